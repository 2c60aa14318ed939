"""What goes wrong, told to people and to scripts.

Every failure has a slug (stable, for scripts and docs anchors) and the exit code of its class:

RocmrunError
├── InputError            2   the input must change
│   ├── UsageError            usage
│   ├── ProfileInvalid        profile-invalid
│   ├── ProfileNotFound       profile-not-found
│   ├── ProfileUnwritable     profile-unwritable
│   ├── ParameterMissing      parameter-missing
│   ├── WorkloadNotFound      workload-not-found
│   ├── WorkloadAmbiguous     workload-ambiguous
│   ├── SecretMissing         secret-missing
│   ├── ReferenceInvalid      reference-invalid
│   ├── MountSourceInvalid    mount-source
│   ├── LockUnwritable        lock-unwritable
│   ├── ReportUnwritable      report-unwritable
│   ├── OutputUnwritable      output-unwritable
│   ├── BundleUnwritable      bundle-unwritable
│   ├── BundleInvalid         bundle-invalid
│   ├── OracleBlind           oracle-blind
│   └── OracleFails           oracle-fails
├── LockError             3   run `rocmrun lock`
│   ├── LockMissing           lock-missing
│   ├── LockStale             lock-stale
│   └── LockUnreadable        lock-unreadable
├── TagMoved              4   tag-moved
├── ImageGone             5   image-gone
├── Unavailable           6   safe to try again
│   ├── EngineUnreachable     engine-unreachable
│   ├── EngineDenied          engine-denied
│   ├── EngineFailed          engine-failed
│   ├── RegistryUnavailable   registry-unavailable
│   │   └── RateLimited       rate-limited
│   ├── RegistryDenied        registry-denied
│   ├── OutOfDisk             out-of-disk
│   ├── LockBusy              lock-busy
│   ├── FetchFailed           fetch-failed
│   └── WorkloadNotUp         workload-not-up
├── NotAsAsked            7   what arrived is not what was asked for
│   ├── DigestMismatch        digest-mismatch
│   ├── PlatformMismatch      platform-mismatch
│   ├── ManifestUnsupported   manifest-unsupported
│   ├── SignatureUnverified   signature-unverified
│   └── ContainerMismatch     container-mismatch
├── HostNotReady          8   host-not-ready
│   ├── DevicesMissing        devices-missing
│   ├── DevicePermission      device-permission
│   ├── MountUnreadable       mount-unreadable
│   ├── Unsupported           unsupported
│   ├── CdiStale              cdi-stale
│   ├── GpuSelection          gpu-selection
│   ├── GpuBusy               gpu-busy
│   ├── PortTaken             port-taken
│   ├── LimitDropped          limit-dropped
│   ├── SeccompBaseUnknown    seccomp-base
│   └── EngineUnsuitable      engine-unsuitable
├── ProbeFailed           9   probe-failed
├── PlanRefused          10   policy
├── CommandNotFound     127   command-not-found
├── CommandNotExecutable 126  command-not-executable
└── Interrupted         130   interrupted
"""

from typing import ClassVar


class RocmrunError(Exception):
    """A failure with a name, an exit code and, where there is one, the next command to run.

    *details* are further lines of the same failure (several mistakes in one profile, say);
    they are printed one a line below the message and go into the JSON error as a list.
    """

    slug: ClassVar[str]
    exit_code: ClassVar[int]

    def __init__(
        self, message: str, *, hint: str | None = None, details: tuple[str, ...] = ()
    ) -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint
        self.details = details


class InputError(RocmrunError):
    """The input must change."""

    slug, exit_code = "input", 2


class UsageError(InputError):
    """Options contradict each other or a value has the wrong form."""

    slug = "usage"


class ProfileInvalid(InputError):
    """A profile has unknown keys, wrong types or contradictions."""

    slug = "profile-invalid"


class ProfileNotFound(InputError):
    """No profile of that name on the search path."""

    slug = "profile-not-found"


class ProfileUnwritable(InputError):
    """The new profile cannot be written where it belongs."""

    slug = "profile-unwritable"


class ParameterMissing(InputError):
    """A profile parameter has neither a default nor a --set."""

    slug = "parameter-missing"


class SecretMissing(InputError):
    """A variable or file that the profile takes a value from is not there."""

    slug = "secret-missing"


class WorkloadNotFound(InputError):
    """No workload of that name, and no profile of that name has one."""

    slug = "workload-not-found"


class WorkloadAmbiguous(InputError):
    """Several workloads of one profile: which one is meant?"""

    slug = "workload-ambiguous"


class ReferenceInvalid(InputError):
    """An image reference does not follow the distribution grammar."""

    slug = "reference-invalid"


class MountSourceInvalid(InputError):
    """A mount's source is missing, loops, or is not what its target needs."""

    slug = "mount-source"


class LockUnwritable(InputError):
    """The lock file cannot be written where it belongs."""

    slug = "lock-unwritable"


class ReportUnwritable(InputError):
    """The report file could not be written."""

    slug = "report-unwritable"


class OutputUnwritable(InputError):
    """The workload's output cannot be written to our stdout or stderr."""

    slug = "output-unwritable"


class BundleUnwritable(InputError):
    """A support bundle cannot be written where it was asked for."""

    slug = "bundle-unwritable"


class BundleInvalid(InputError):
    """A file is no support bundle, a damaged one, or one of a newer rocmrun."""

    slug = "bundle-invalid"


class OracleBlind(InputError):
    """What should tell a job that works from one that does not passes without what the job cannot do without."""

    slug = "oracle-blind"


class OracleFails(InputError):
    """The job fails with every privilege of the permissive side, so that none of them is what it lacks."""

    slug = "oracle-fails"


class LockError(RocmrunError):
    """The lock file does not answer for what is asked."""

    slug, exit_code = "lock", 3


class LockMissing(LockError):
    """There is no lock file, or none that holds this image."""

    slug = "lock-missing"


class LockStale(LockError):
    """Profiles and lock file disagree."""

    slug = "lock-stale"


class LockUnreadable(LockError):
    """The lock file is not one: broken TOML, unknown keys, merge markers, a newer version."""

    slug = "lock-unreadable"


class TagMoved(RocmrunError):
    """A tag now names another digest than the locked one."""

    slug, exit_code = "tag-moved", 4


class ImageGone(RocmrunError):
    """The registry (or, with --pull never, this machine) no longer has the image."""

    slug, exit_code = "image-gone", 5


class Unavailable(RocmrunError):
    """Something outside did not answer or refused; safe to try again."""

    slug, exit_code = "unavailable", 6


class EngineUnreachable(Unavailable):
    """No engine answers."""

    slug = "engine-unreachable"


class EngineDenied(Unavailable):
    """The engine's socket may not be opened by this user."""

    slug = "engine-denied"


class EngineFailed(Unavailable):
    """The engine answered with an error that has no name of its own."""

    slug = "engine-failed"


class RegistryUnavailable(Unavailable):
    """A registry is unreachable, too slow, rate limited or broken."""

    slug = "registry-unavailable"


class RateLimited(RegistryUnavailable):
    """A registry has had too many requests: it is not asked again in this run."""

    slug = "rate-limited"


class RegistryDenied(Unavailable):
    """A registry wants a login, or refuses this one."""

    slug = "registry-denied"


class OutOfDisk(Unavailable):
    """The engine's disk is full."""

    slug = "out-of-disk"


class LockBusy(Unavailable):
    """Another process holds the lock file."""

    slug = "lock-busy"


class FetchFailed(Unavailable):
    """The downloader inside the image ended with an error."""

    slug = "fetch-failed"


class WorkloadNotUp(Unavailable):
    """The successor of a workload ended or stayed unhealthy; the old one was started again."""

    slug = "workload-not-up"


class NotAsAsked(RocmrunError):
    """What arrived is not what was asked for."""

    slug, exit_code = "not-as-asked", 7


class DigestMismatch(NotAsAsked):
    """The image that arrived is not the locked one."""

    slug = "digest-mismatch"


class PlatformMismatch(NotAsAsked):
    """The image that arrived is for another platform."""

    slug = "platform-mismatch"


class ManifestUnsupported(NotAsAsked):
    """A registry answers with a manifest that no current engine can pull by digest."""

    slug = "manifest-unsupported"


class SignatureUnverified(NotAsAsked):
    """The profile asks for a signature, and none could be verified, for whatever reason."""

    slug = "signature-unverified"


class ContainerMismatch(NotAsAsked):
    """The engine recorded a container with more rights than were asked for."""

    slug = "container-mismatch"


class HostNotReady(RocmrunError):
    """The host cannot run this plan as it is."""

    slug, exit_code = "host-not-ready", 8


class DevicesMissing(HostNotReady):
    """A device node that the plan needs does not exist."""

    slug = "devices-missing"


class DevicePermission(HostNotReady):
    """A device node cannot be opened by any group the container may have."""

    slug = "device-permission"


class MountUnreadable(HostNotReady):
    """The container's user may not read a mount's source, or not write where the profile says rw."""

    slug = "mount-unreadable"


class Unsupported(HostNotReady):
    """AMD's support matrix stands against GPU, system, driver and image together, and the profile heeds it."""

    slug = "unsupported"


class CdiStale(HostNotReady):
    """The CDI specification is missing, broken, or not this host's any more."""

    slug = "cdi-stale"


class GpuSelection(HostNotReady):
    """A GPU selector matches nothing here, or more than one thing."""

    slug = "gpu-selection"


class GpuBusy(HostNotReady):
    """A selected GPU is held by another run or process."""

    slug = "gpu-busy"


class PortTaken(HostNotReady):
    """A published port is in use on the host."""

    slug = "port-taken"


class LimitDropped(HostNotReady):
    """The kernel or engine cannot enforce a limit that the plan sets."""

    slug = "limit-dropped"


class SeccompBaseUnknown(HostNotReady):
    """The engine's own seccomp filter cannot be read, so that nothing can be taken from it."""

    slug = "seccomp-base"


class EngineUnsuitable(HostNotReady):
    """The engine answers but cannot do the job: too old, another kernel, a foreign runtime."""

    slug = "engine-unsuitable"


class ProbeFailed(RocmrunError):
    """The probe found that work must not start."""

    slug, exit_code = "probe-failed", 9


class PlanRefused(RocmrunError):
    """Policy says no, with the narrower way."""

    slug, exit_code = "policy", 10


class CommandNotFound(RocmrunError):
    """The image has no such command; known before anything started."""

    slug, exit_code = "command-not-found", 127


class CommandNotExecutable(RocmrunError):
    """The command exists in the image but may not be executed."""

    slug, exit_code = "command-not-executable", 126


class Interrupted(RocmrunError):
    """A signal ended rocmrun before the workload ran."""

    slug, exit_code = "interrupted", 130

    def __init__(self, message: str, *, signal_number: int = 2) -> None:
        super().__init__(message)
        self.signal_number = signal_number


def all_slugs() -> dict[str, int]:
    """Return slug → exit code for every error class: the one table that docs and tests check."""

    def walk(error: type[RocmrunError]) -> dict[str, int]:
        found = {error.slug: error.exit_code} if "slug" in vars(error) else {}
        for child in error.__subclasses__():
            found |= walk(child)
        return found

    return walk(RocmrunError) | {"bug": 70}
