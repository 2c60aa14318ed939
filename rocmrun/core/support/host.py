"""Whether AMD lists the host: its distribution, its kernel, and its driver with the image's ROCm."""

from collections.abc import Iterator

from rocmrun.core.support.finding import Finding, Job
from rocmrun.core.support.matrix import Matrix, OsRow
from rocmrun.core.support.names import is_kernel, is_model, is_system, kernels_of, system_name


def judge_system(job: Job) -> Iterator[Finding]:
    """Judge distribution and kernel of the host; the image's own distribution is no row of AMD's."""
    system, release = system_name(job.host), job.release
    called = job.host.os_name or job.host.os_id or "this system"
    if job.host.wsl:
        yield job.found("system", "unknown", "WSL has rows of its own, which this matrix lacks")
        return
    if release is None or not release.os:
        why = (
            f"no list of systems was found for ROCm {job.rocm}"
            if job.rocm
            else "no release to look it up in"
        )
        yield job.found("system", "unknown", f"{called}: {why}")
        return
    where = f"ROCm {release.version}, systems"
    rows = [row for row in release.os if system and is_system(row.name, system)]
    if not rows:
        listed = ", ".join(dict.fromkeys(row.name for row in release.os))
        yield job.found("system", "outside", f"{called} is not listed; AMD lists {listed}", where)
        return
    models = {name for names in job.names.values() for name in names}
    allowed = [
        row for row in rows if not row.gpus_only or any(is_model(m, models) for m in row.gpus_only)
    ]
    if not allowed:
        only = ", ".join(rows[0].gpus_only)
        yield job.found(
            "system", "unsupported", f"{rows[0].name} is listed for {only} only", f"{where}: {rows[0].name}"
        )  # fmt: skip
        return
    note = f" ({allowed[0].note})" if allowed[0].note else ""
    yield job.found(
        "system", "supported", f"{allowed[0].name} is listed{note}", f"{where}: {allowed[0].name}"
    )  # fmt: skip
    yield _of_kernel(job, allowed, where)


def _of_kernel(job: Job, rows: list[OsRow], where: str) -> Finding:
    kernel = job.host.kernel
    kinds = {
        row.kind
        for row in (job.release.gpus if job.release else ())
        if row.gfx in {g.gfx for g in job.gpus}
    }
    listed = [known for row in rows for known in kernels_of(row, kinds)]
    row = f"{where}: {rows[0].name}, kernel {rows[0].kernel or 'not found'}"
    if kernel is None or not listed:
        return job.found("kernel", "unknown", "which kernels are meant was not found", row)
    if any(is_kernel(known, kernel) for known in listed):
        return job.found("kernel", "supported", f"kernel {kernel} is of a listed series", row)
    return job.found(
        "kernel",
        "outside",
        f"kernel {kernel} is not listed; AMD lists {', '.join(listed)}",
        row,
    )


def judge_driver(job: Job) -> Finding:
    """Judge amdgpu against the image's ROCm, by AMD's table."""
    host = job.host
    # MI300A is an APU too, and an Instinct: the table is for it as for the others.
    ryzen = [gpu for gpu in job.gpus if gpu.apu and gpu.gfx != "gfx942"]
    if ryzen and len(ryzen) == len(job.gpus):
        return job.found(
            "driver", "unknown", "for Ryzen APUs AMD says to keep the kernel's own driver: the table says nothing"
        )  # fmt: skip
    if host.driver_source != "dkms" or host.driver_version is None:
        inbox = f"inbox driver of kernel {host.kernel}" if host.driver_source else "not loaded"
        return job.found("driver", "unknown", f"AMD's driver table does not cover this: {inbox}")
    series = driver_series(job.matrix, host.driver_version)
    called = f"amdgpu {host.driver_version}"
    if series is None:
        return job.found(
            "driver", "unknown", f"{called}: which driver release that is, is not known"
        )
    called += f" (driver {series})"
    if job.rocm is None:
        return job.found("driver", "unknown", f"{called}: which ROCm it must serve is not known")
    return _by_driver_table(job, called, series)


def _by_driver_table(job: Job, called: str, series: str) -> Finding:
    rocm = job.rocm or ""
    row = next((row for row in job.matrix.drivers if row.driver == series), None)
    what = f"driver table: {series}"
    listed = job.release.drivers_at_release if job.release else ()
    if row is None:
        return Finding(
            subject="driver", verdict="outside", row=what,
            sentence=f"{called} is a preview driver, which AMD's table leaves out",
        )  # fmt: skip
    sources = (job.matrix.sources.get(job.matrix.driver_source, ""),)
    if not any(_is_series(space, rocm) for each in job.matrix.drivers for space in each.user_space):
        return Finding(
            subject="driver", verdict="unknown", row=what, sources=sources,
            sentence=f"{called}: AMD's table does not know ROCm {rocm}",
        )  # fmt: skip
    if not any(_is_series(space, rocm) for space in row.user_space):
        accepted = ", ".join(row.user_space)
        return Finding(
            subject="driver", verdict="incompatible", row=what, sources=sources,
            sentence=f"{called} does not serve ROCm {rocm}; it serves {accepted}",
        )  # fmt: skip
    if listed and not any(_same_series(driver, series) for driver in listed):
        return Finding(
            subject="driver", verdict="outside", row=what, sources=sources,
            sentence=f"{called} serves ROCm {rocm}, and the page of that release does not list it",
        )  # fmt: skip
    return Finding(
        subject="driver", verdict="supported", row=what, sources=sources,
        sentence=f"{called} serves ROCm {rocm}",
    )  # fmt: skip


def driver_series(matrix: Matrix, module: str) -> str | None:
    """Return "30.10.x" for module version "6.14.14"; None where no source pairs it."""
    plain = module.partition("-")[0].partition("+")[0]
    exact = {known: driver for known, driver in matrix.modules if not known.endswith(".x")}
    if plain in exact:
        return exact[plain]
    return next((driver for known, driver in matrix.modules if _is_series(known, plain)), None)


def _is_series(series: str, version: str) -> bool:
    """Whether "7.2.4" is of "7.2.x"."""
    return version.startswith(series[:-1]) if series.endswith(".x") else version == series


def _same_series(driver: str, series: str) -> bool:
    """Whether "30.10.2", "30.10" or "6.4.x" is of the series "30.10.x"."""
    return f"{driver.removesuffix('.x')}.".startswith(series[:-1])
