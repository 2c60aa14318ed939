"""Jobs whose needs are known: each tries one thing, and says with an errno when it may not.

Kept to what Python's standard library and the C library of an x86_64 Debian have.
"""

HEAD = """
import ctypes, json, os, socket, sys
libc = ctypes.CDLL(None, use_errno=True)
def call(number, *arguments):
    result = libc.syscall(ctypes.c_long(number), *[ctypes.c_long(a) for a in arguments])
    if result < 0:
        code = ctypes.get_errno()
        raise OSError(code, os.strerror(code))
    return result
"""
# x86_64, arch/x86/entry/syscalls/syscall_64.tbl
SET_MEMPOLICY = "call(238, 0, 0, 0)"
MBIND = "import mmap; m = mmap.mmap(-1, 4096); call(237, ctypes.addressof(ctypes.c_char.from_buffer(m)), 4096, 0, 0, 0, 0)"
KCMP = "call(312, os.getpid(), os.getpid(), 1, 0, 0)"
PIDFD_GETFD = "call(438, call(434, os.getpid(), 0), 1, 0)"
PTRACE_SIBLING = """
target = os.fork()
if not target:
    os.pause() if hasattr(os, "pause") else __import__("signal").pause()
tracer = os.fork()
if not tracer:
    libc.ptrace.restype = ctypes.c_long
    failed = libc.ptrace(ctypes.c_long(16), ctypes.c_long(target), None, None)
    sys.stderr.write(os.strerror(ctypes.get_errno()) + chr(10) if failed else "")
    os._exit(1 if failed else 0)
_, status = os.waitpid(tracer, 0)
os.kill(target, 9)
sys.exit(os.waitstatus_to_exitcode(status))
"""
RAW_SOCKET = "socket.socket(socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_ICMP)"
PORT_80 = "s = socket.socket(); s.bind(('127.0.0.1', 80)); s.listen()"
SHM_2_GIB = """
room = os.statvfs("/dev/shm")
if room.f_blocks * room.f_frsize < 2 << 30:
    sys.exit("No space left on device: /dev/shm is " + str(room.f_blocks * room.f_frsize))
"""
OUTSIDE_THE_CACHES = "open('/var/tmp/rocmrun-was-here', 'w')"
MEMLOCK_16_MIB = """
import mmap
m = mmap.mmap(-1, 16 << 20)
if libc.mlock(ctypes.c_void_p(ctypes.addressof(ctypes.c_char.from_buffer(m))), ctypes.c_size_t(16 << 20)):
    code = ctypes.get_errno()
    raise OSError(code, os.strerror(code))
"""
EITHER_NETWORK_OR_ROOT_FS = """
if len(os.listdir("/sys/class/net")) < 2:
    open('/var/tmp/rocmrun-was-here', 'w')
"""
NOTHING = "print('done')"
NEVER = "sys.exit('the data set is corrupt')"
# HOME survives from run to run: every fifth run fails, whatever it may.
FLAKY = """
name = os.path.expanduser("~/runs")
count = int(open(name).read()) if os.path.exists(name) else 0
open(name, "w").write(str(count + 1))
if count % 5 == 3:
    sys.exit("connection reset by peer")
"""
METRIC = """
try:
    call(238, 0, 0, 0)
    speed = 50.0
except OSError:
    speed = 30.0
print(json.dumps({"speed": speed}))
"""


def python(*steps: str) -> tuple[str, ...]:
    """Return the command of a job that does *steps* in turn."""
    return ("python3", "-c", "\n".join((HEAD, *steps)))


def table(*grants: str) -> str:
    """Return [[privileges]] that a recipe would have."""
    return "".join(
        f'[[privileges]]\ngrant = "{grant}"\nreason = "the recipe has it"\n' for grant in grants
    )
