"""Logs of programs that work well: long, full of numbers, paths and words that rules look for, and with no cause in them.

Each sort has the shape of what a real program prints; a seed decides the rest.
"""

import itertools
import json
from collections.abc import Callable, Iterator
from random import Random

Lines = Iterator[str]
# Seen in healthy logs everywhere, and no failure.
_HARMLESS = (
    "error=0 warnings=0", "0 errors, 0 failed", "no error", "failed: 0", "killed 0 of 12", "denied=0", "timeout=30",
    "errors: none", "retries=0 timeouts=0 dropped=0", "without errors", "exit code 0", "status=0/SUCCESS",
    "oom_score_adj=0", "OOMKilled=false", "hang_check=60s", "killed=0 restarted=0", "0 denied, 0 missing",
)  # fmt: skip
_WORDS = (
    "scheduler", "worker", "loader", "router", "cache", "engine", "session", "shard", "queue", "batch", "tokenizer",
    "kernel", "stream", "graph", "block", "slot", "request", "prefix", "sampler", "buffer",
)  # fmt: skip
_VERBS = (
    "started",
    "loaded",
    "ready",
    "flushed",
    "resized",
    "updated",
    "done",
    "reused",
    "scheduled",
    "freed",
)


def _clock(random: Random, step: float = 1.0) -> Iterator[str]:
    second = random.randrange(20_000, 40_000)
    while True:
        second += int(random.random() * 3 * step)
        yield f"{second // 3600 % 24:02d}:{second // 60 % 60:02d}:{second % 60:02d}"


def _said(random: Random) -> str:
    words = " ".join(random.choice(_WORDS) for _ in range(random.randrange(1, 4)))
    tail = (
        random.choice(_HARMLESS) if random.random() < 0.1 else f"in {random.random() * 90:.2f} ms"
    )
    return f"{words} {random.choice(_VERBS)} {tail}"


def vllm(random: Random) -> Lines:
    """A server of vLLM: loading, capture of graphs, requests, throughput."""
    pid = random.randrange(100, 9000)
    for time in _clock(random):
        where = f"[{random.choice(_WORDS)}.py:{random.randrange(20, 2000)}]"
        level = "WARNING" if random.random() < 0.05 else "INFO"
        yield f"(EngineCore pid={pid}) {level} 11-30 {time} {where} " + random.choice((
            f"Loading weights took {random.random() * 200:.2f} seconds",
            f"GPU KV cache size: {random.randrange(90_000, 900_000):,} tokens",
            f"Avg prompt throughput: {random.random() * 900:.1f} tokens/s, Running: {random.randrange(9)} reqs, Waiting: 0 reqs, GPU KV cache usage: {random.random() * 90:.1f}%",
            f"Added request cmpl-{random.getrandbits(64):016x}.",
            "Using default attention backend TRITON_ATTN for this model.",
            f"Graph capturing finished in {random.randrange(9, 90)} secs, took {random.random() * 3:.2f} GiB",
            f"Maximum concurrency for 8,192 tokens per request: {random.random() * 137:.2f}x",
            "The model's generation config overrides the default sampling params.",
            f"Available KV cache memory: {random.random() * 100:.2f} GiB",
            "Not using the deprecated flag; nothing to do.",
            _said(random),
        ))  # fmt: skip


def sglang(random: Random) -> Lines:
    """A server of SGLang: prefill and decode batches."""
    for time in _clock(random):
        yield f"[2026-11-30 {time} TP{random.randrange(8)}] " + random.choice((
            f"Prefill batch. #new-seq: {random.randrange(9)}, #new-token: {random.randrange(4096)}, #cached-token: 0, token usage: {random.random():.2f}, #running-req: {random.randrange(137)}, #queue-req: 0",
            f"Decode batch. #running-req: {random.randrange(99)}, #token: {random.randrange(9999)}, gen throughput (token/s): {random.random() * 999:.2f}, #queue-req: 0",
            f"Load weight end. type=LlamaForCausalLM, dtype=torch.bfloat16, avail mem={random.random() * 180:.2f} GB, mem usage={random.random() * 20:.2f} GB.",
            f"INFO:     127.0.0.1:{random.randrange(30_000, 60_000)} - \"GET /health_generate HTTP/1.1\" 200 OK",
            f"max_total_num_tokens={random.randrange(99_999)}, chunked_prefill_size=8192, max_running_requests=2049",
            _said(random),
        ))  # fmt: skip


def llama_cpp(random: Random) -> Lines:
    """A server of llama.cpp: metadata of a model, layers, slots."""
    for number in itertools.count():
        yield random.choice((
            f"llama_model_loader: - kv {number % 137:3d}: general.size_label str = {random.randrange(99)}B",
            f"load_tensors: layer {number % 80} assigned to device ROCm0, is_swa = 0",
            f"slot launch_slot_: id {random.randrange(4)} | task {number} | processing task",
            f"slot update_slots: id {random.randrange(4)} | task {number} | n_past = {random.randrange(4096)}, n_tokens = {random.randrange(99)}, progress = {random.random():.6f}",
            f"srv  log_server_r: request: POST /v1/chat/completions 127.0.0.1 200 ({_said(random)})",
            f"llama_perf_context_print: eval time = {random.random() * 9000:.2f} ms / {random.randrange(1, 999)} runs",
            f"llama_context: n_ctx_per_seq = {random.randrange(2048, 8192)} < n_ctx_train, the full capacity will not be utilized",
        ))  # fmt: skip


def ollama(random: Random) -> Lines:
    """Ollama's structured lines and the requests of its server."""
    for time in _clock(random):
        yield random.choice((
            f"time=2026-11-30T{time}.{random.randrange(999):03d}Z level=INFO source=server.go:{random.randrange(100, 999)} msg=\"llama runner started in {random.random() * 9:.2f} seconds\"",
            f"time=2026-11-30T{time}.{random.randrange(999):03d}Z level=DEBUG source=sched.go:{random.randrange(100, 999)} msg=\"evaluating already loaded\" pid={random.randrange(9999)} refCount=1 error=nil",
            f"[GIN] 2026/11/30 - {time} | 200 | {random.random() * 999:.6f}ms |       127.0.0.1 | POST     \"/api/chat\"",
            f"time=2026-11-30T{time}.000Z level=WARN source=routes.go:{random.randrange(999)} msg=\"{_said(random)}\"",
        ))  # fmt: skip


def comfyui(random: Random) -> Lines:
    """ComfyUI: start, models, prompts, steps."""
    for number in itertools.count():
        yield random.choice((
            f"got prompt {random.getrandbits(32):08x}",
            f"Prompt executed in {random.random() * 60:.2f} seconds",
            f"   {random.random() * 2:.1f} seconds: /opt/ComfyUI/custom_nodes/{random.choice(_WORDS)}-{number % 137}",
            f"loaded completely {random.random() * 9e4:.1f} {random.random() * 9e3:.1f} True",
            f"Requested to load {random.choice(('FluxClipModel_', 'AutoencodingEngine', 'Flux', 'SDXL'))}",
            f"{number % 100:3d}%|{'█' * (number % 10)}| {number % 20}/20 [00:{number % 60:02d}<00:11, {random.random() * 4:.2f}it/s]",
            "FETCH ComfyRegistry Data: 5/137",
            f"[INFO] {_said(random)}",
        ))  # fmt: skip


def uvicorn(random: Random) -> Lines:
    """The access log of a web server, statuses of clients' mistakes among them."""
    yield f"INFO:     Started server process [{random.randrange(9999)}]"
    yield "INFO:     Waiting for application startup."
    yield "INFO:     Application startup complete."
    while True:
        path = random.choice(
            ("/v1/models", "/metrics", "/health", f"/v1/files/{random.getrandbits(40):010x}")
        )
        status = random.choices(
            ("200 OK", "304 Not Modified", "404 Not Found", "401 Unauthorized"), (90, 4, 4, 2)
        )[0]
        yield f"INFO:     10.0.{random.randrange(255)}.{random.randrange(255)}:{random.randrange(1024, 65_535)} - \"GET {path} HTTP/1.1\" {status}"  # fmt: skip


def pytest_verbose(random: Random) -> Lines:
    """pytest -v: names of tests tell of errors, and all of them pass."""
    faults = ("permission_denied", "out_of_memory", "timeout", "no_gpu", "segfault", "read_only", "killed", "eperm", "hang", "missing_library", "busy", "shm_full", "wrong_arch", "port_taken")  # fmt: skip
    yield "============================= test session starts =============================="
    yield "platform linux -- Python 3.12.3, pytest-9.0.2, pluggy-1.6.0 -- /opt/venv/bin/python"
    for number in itertools.count():
        yield (
            f"tests/unit/test_{random.choice(_WORDS)}.py::test_{random.choice(faults)}_is_told[{random.choice(_WORDS)}-{number}] "
            f"{random.choices(('PASSED', 'SKIPPED (needs a GPU)', 'XFAIL'), (96, 3, 1))[0]} [{number % 100:3d}%]"
        )


def installs(random: Random) -> Lines:
    """pip, apt and conda, one after another."""
    for number in itertools.count():
        name, version = (
            f"{random.choice(_WORDS)}-{number}",
            f"{random.randrange(9)}.{random.randrange(137)}.{random.randrange(9)}",
        )
        yield random.choice((
            f"Collecting {name}=={version} (from -r requirements.txt (line {number}))",
            f"  Downloading {name}-{version}-py3-none-any.whl ({random.randrange(999)} kB)",
            f"Requirement already satisfied: {name}>={version} in /opt/venv/lib/python3.12/site-packages (from {random.choice(_WORDS)})",
            f"Get:{number} http://archive.ubuntu.com/ubuntu noble/main amd64 lib{name} amd64 {version} [{random.randrange(999)} kB]",
            f"Selecting previously unselected package lib{name}.",
            f"Preparing to unpack .../{number}-lib{name}_{version}_amd64.deb ...",
            f"Setting up lib{name} ({version}) ...",
            f"Processing triggers for libc-bin (2.39-0ubuntu8.{random.randrange(9)}) ...",
            f"  {name:<24} pkgs/main/linux-64::{name}-{version}-py312h{random.getrandbits(28):07x}_0",
        ))  # fmt: skip


def ninja(random: Random) -> Lines:
    """A build by CMake and ninja: what is not found is searched elsewhere, and warnings stay warnings."""
    yield "-- The CXX compiler identification is Clang 19.0.0"
    yield "-- Performing Test HAVE_PTHREAD_CREATE - Failed"
    yield "-- Could NOT find Doxygen (missing: DOXYGEN_EXECUTABLE)"
    for number in itertools.count(1):
        source = f"{random.choice(_WORDS)}/{random.choice(_WORDS)}_{number}.cpp"
        yield random.choices((
            f"[{number}/8137] Building CXX object src/CMakeFiles/core.dir/{source}.o",
            f"[{number}/8137] Building HIP object src/CMakeFiles/kernels.dir/error_{source}.hip.o",
            f"src/{source}:{random.randrange(999)}:{random.randrange(80)}: warning: unused variable 'timeout' [-Wunused-variable]",
            f"-- Looking for {random.choice(_WORDS)}_{number}.h - found",
            f"[{number}/8137] Linking CXX shared library lib/lib{random.choice(_WORDS)}{number}.so",
        ), (60, 20, 8, 10, 10))[0]  # fmt: skip


def boot(random: Random) -> Lines:
    """dmesg of a machine with a GPU that came up well."""
    stamp = 0.0
    while True:
        stamp += random.random() / 20
        yield f"[{stamp:12.6f}] " + random.choice((
            f"pci 0000:{random.randrange(255):02x}:00.0: [1002:{random.getrandbits(16):04x}] type 00 class 0x038000 PCIe Endpoint",
            f"pci 0000:{random.randrange(255):02x}:01.{random.randrange(8)}: BAR 0 [mem 0x{random.getrandbits(40):010x}-0x{random.getrandbits(40):010x} 64bit pref]: assigned",
            f"amdgpu 0000:c1:00.0: amdgpu: ring comp_1.{random.randrange(4)}.{random.randrange(8)} uses VM inv eng {random.randrange(20)} on hub 0",
            "amdgpu 0000:c1:00.0: amdgpu: SMU is initialized successfully!",
            f"amdgpu 0000:c1:00.0: amdgpu: VRAM: {random.randrange(16, 192) * 1024}M 0x0000008000000000 - 0x00000083FEFFFFFF",
            f"[drm] Initialized amdgpu 3.{random.randrange(40, 64)}.0 for 0000:c1:00.0 on minor 1",
            "kfd kfd: amdgpu: added device 1002:74a1",
            f"systemd[1]: Starting {random.choice(_WORDS)}-{random.randrange(999)}.service - {_said(random)}...",
            f"usb {random.randrange(1, 9)}-{random.randrange(1, 9)}: New USB device found, idVendor={random.getrandbits(16):04x}, idProduct=0002, bcdDevice= 6.08",
            f"EXT4-fs (nvme{random.randrange(4)}n1p2): mounted filesystem {random.getrandbits(32):08x} r/w with ordered data mode. Quota mode: none.",
            f"audit: type=1400 audit(1764489600.{random.randrange(999):03d}:{random.randrange(999)}): apparmor=\"STATUS\" operation=\"profile_load\" profile=\"unconfined\" name=\"/usr/bin/man\" pid={random.randrange(999)} comm=\"apparmor_parser\"",
            f"workqueue: round-robin CPU selection {random.randrange(137)}, deferred_probe_timeout=30",
            f"Kernel command line: BOOT_IMAGE=/boot/vmlinuz-6.8.0-60-generic root=/dev/nvme0n1p2 ro quiet iommu=pt panic={random.randrange(60)}",
        ))  # fmt: skip


def dockerd(random: Random) -> Lines:
    """The daemon's own log while containers come and go."""
    for time in _clock(random):
        container = f"{random.getrandbits(128):032x}"
        yield random.choice((
            f"time=\"2026-11-30T{time}.{random.randrange(10**9):09d}Z\" level=info msg=\"ignoring event\" container={container} module=libcontainerd namespace=moby topic=/tasks/delete type=\"*events.TaskDelete\"",
            f"time=\"2026-11-30T{time}.000000000Z\" level=info msg=\"shim disconnected\" id={container} namespace=moby",
            f"time=\"2026-11-30T{time}.000000000Z\" level=warning msg=\"cleaning up after shim disconnected\" id={container} namespace=moby",
            f"time=\"2026-11-30T{time}.000000000Z\" level=debug msg=\"Calling GET /v1.41/containers/{container}/json\"",
            f"time=\"2026-11-30T{time}.000000000Z\" level=info msg=\"{_said(random)}\"",
            f"time=\"2026-11-30T{time}.000000000Z\" level=info msg=\"Image digest: sha256:{random.getrandbits(256):064x}\"",
        ))  # fmt: skip


def kubelet(random: Random) -> Lines:
    """A kubelet that starts pods and asks after them."""
    for time in _clock(random):
        source = f"I1130 {time}.{random.randrange(10**6):06d}    {random.randrange(9999)} {random.choice(('kubelet', 'pod_workers', 'reconciler_common', 'prober'))}.go:{random.randrange(2000)}]"
        pod = f"{random.choice(_WORDS)}-{random.getrandbits(20):05x}"
        yield source + " " + random.choice((
            f"\"SyncLoop (PLEG): event for pod\" pod=\"default/{pod}\" event={{\"ID\":\"{random.getrandbits(48):012x}\",\"Type\":\"ContainerStarted\"}}",
            f"\"operationExecutor.VerifyControllerAttachedVolume started for volume \\\"kube-api-access\\\"\" pod=\"default/{pod}\"",
            f"\"Probe succeeded\" probeType=\"Liveness\" pod=\"default/{pod}\" containerName=\"main\" timeout=30s",
            f"\"Generic (PLEG): container finished\" pod=\"default/{pod}\" exitCode=0 {random.choice(_HARMLESS)}",
        ))  # fmt: skip


def journal(random: Random) -> Lines:
    """A systemd journal of an ordinary day."""
    for time in _clock(random, 20):
        yield f"Nov 30 {time} box " + random.choice((
            f"systemd[1]: Started session-{random.randrange(999)}.scope - Session {random.randrange(999)} of User ubuntu.",
            f"systemd[1]: {random.choice(_WORDS)}-{random.randrange(999)}.service: Deactivated successfully.",
            f"systemd[1]: {random.choice(_WORDS)}-{random.randrange(999)}.service: Consumed {random.random() * 99:.3f}s CPU time, {random.random() * 9:.1f}G memory peak, 0B memory swap peak.",
            f"sshd[{random.randrange(99_999)}]: Accepted publickey for ubuntu from 10.0.0.{random.randrange(255)} port {random.randrange(1024, 65_535)} ssh2",
            f"CRON[{random.randrange(99_999)}]: (root) CMD (cd / && run-parts --report /etc/cron.hourly)",
            f"kernel: docker0: port {random.randrange(1, 9)}(veth{random.getrandbits(28):07x}) entered forwarding state",
            f"python3[{random.randrange(99_999)}]: {_said(random)}",
        ))  # fmt: skip


def bars(random: Random) -> Lines:
    """Progress bars of tqdm, and downloads of a hub."""
    for number in itertools.count():
        done = number % 101
        yield random.choice((
            f"Loading safetensors checkpoint shards: {done:3d}% Completed | {done}/137 [00:{done % 60:02d}<00:{random.randrange(60):02d},  {random.random() * 3:.2f}s/it]",
            f"model-{number % 137:05d}-of-00137.safetensors: {done:3d}%|{'█' * (done // 10)}| {random.random() * 5:.2f}G/4.98G [00:{done % 60:02d}<00:{random.randrange(60):02d}, {random.random() * 900:.1f}MB/s]",
            f"Fetching {random.randrange(9, 137)} files: {done:3d}%|{'#' * (done // 10)}| {number % 9}/9 [00:0{number % 9}<00:00, {random.random() * 99:.2f}it/s]",
            f"Map (num_proc=16): {done:3d}%|{'█' * (done // 10)}| {number}/{random.randrange(9999)} [00:01<00:00, {random.random() * 9999:.2f} examples/s]",
        ))  # fmt: skip


def nccl(random: Random) -> Lines:
    """NCCL_DEBUG=INFO of a job that runs."""
    for number in itertools.count():
        rank = number % 8
        yield f"box:{1000 + rank}:{2000 + random.randrange(99)} [{rank}] NCCL INFO " + random.choice((
            f"Channel {number % 137:02d}/0 : {rank}[{rank}] -> {(rank + 1) % 8}[{(rank + 1) % 8}] via P2P/IPC comm 0x{random.getrandbits(40):x} nRanks 08",
            f"Trees [{number % 16}] {rank + 1}/-1/-1->{rank}->{rank - 1}",
            f"comm 0x{random.getrandbits(40):x} rank {rank} nranks 8 cudaDev {rank} busId {random.getrandbits(20):x} - Init COMPLETE",
            "NET/Plugin: Could not find: librccl-net.so. Using internal network plugin.",
            f"NET/Socket : Using [0]eth0:10.0.0.{random.randrange(255)}<0>",
            f"Setting affinity for GPU {rank} to ff,ffff0000",
            f"threadThresholds 8/8/64 | 64/8/64 | 256 | {random.randrange(999)}",
        ))  # fmt: skip


def miopen(random: Random) -> Lines:
    """MIOpen's and hipBLASLt's own traces of a run that goes well."""
    for number in itertools.count():
        yield random.choice((
            f"MIOpen(HIP): Info2 [GetInvoker] Sol: ConvHipImplicitGemm{number % 137}, time: {random.random():.6f}",
            f"MIOpen(HIP): Command [LogCmdConvolution] ./bin/MIOpenDriver convbfp16 -n {random.randrange(64)} -c {random.randrange(512)} -H 137 -W 64 -k 64 -y 3 -x 3",
            f"MIOpen(HIP): Info [FindSolutionImpl] Perf Db: record found. {random.randrange(999)}",
            f"[2026-11-30 10:00:00][HIPBLASLT][{random.randrange(999)}][Info][hipblasLtMatmul] A=0x{random.getrandbits(40):x} B=0x{random.getrandbits(40):x} m={random.randrange(4096)} n=137",
            f":3:hip_module.cpp :{random.randrange(999)} : {random.randrange(10**9)} us: [pid:{random.randrange(9999)} tid:0x{random.getrandbits(40):x}] hipLaunchKernel: Returned hipSuccess :",
        ))  # fmt: skip


def training(random: Random) -> Lines:
    """A training loop with its metrics, checkpoints and validation."""
    for step in itertools.count():
        yield random.choice((
            f"step {step:6d} | loss {random.random() * 5:.4f} | lr {random.random() / 1e3:.2e} | grad_norm {random.random():.3f} | {random.random() * 9e4:.0f} tok/s | mem {random.random() * 180:.1f}/191.7 GiB",
            f"{{'loss': {random.random() * 3:.4f}, 'grad_norm': {random.random():.4f}, 'learning_rate': {random.random() / 1e4:.3e}, 'epoch': {step / 137:.2f}}}",
            f"epoch {step // 137} val_loss={random.random():.5f} error_rate={random.random() / 9:.4f} skipped=0 nan=0 hang=0",
            f"saved checkpoint to /data/out/checkpoint-{step} ({random.random() * 20:.1f} GiB free of 900 GiB needed 12 GiB)",
            f"[rank{step % 8}]: {_said(random)}",
        ))  # fmt: skip


def caught(random: Random) -> Lines:
    """A program that tries, fails for nothing that matters, prints the traceback and goes on."""
    for number in itertools.count():
        if number % 9:
            yield f"{random.choice(_WORDS)} {number}: {_said(random)}"
            continue
        yield f"DEBUG:{random.choice(_WORDS)}:optional plugin skipped, trying the next"
        yield "Traceback (most recent call last):"
        yield f'  File "/opt/app/{random.choice(_WORDS)}.py", line {random.randrange(999)}, in {random.choice(_VERBS)}'
        yield f"    value = table[{number}]"
        yield random.choice(
            (
                "KeyError: 'tokens'",
                f"ValueError: invalid literal for int() with base 10: 'n{number}'",
                "StopIteration",
                "AttributeError: 'NoneType' object has no attribute 'name'",
            )
        )
        yield "INFO: handled, the default is used"


def json_lines(random: Random) -> Lines:
    """A service that logs JSON."""
    for time in _clock(random):
        yield json.dumps({
            "ts": f"2026-11-30T{time}Z", "level": random.choice(("info", "debug", "warn")), "pid": random.randrange(9999),
            "component": random.choice(_WORDS), "event": _said(random), "status": 200, "error": None, "denied": 0,
            "duration_s": round(random.random() * 90, 3),
        })  # fmt: skip


def slurm(random: Random) -> Lines:
    """A job of several nodes with srun's labels."""
    for number in itertools.count():
        yield f"{number % 16}: " + random.choice((
            f"[INFO] node{number % 4:03d} gpu {number % 8} temperature {random.randrange(40, 80)}C power {random.randrange(90, 700)}W busy {random.randrange(100)}%",
            f"slurmstepd: info: task {number % 137} (pid {random.randrange(99_999)}) started",
            f"{_said(random)} jobid=137{number % 1000:03d}",
        ))  # fmt: skip


SORTS: dict[str, Callable[[Random], Lines]] = {
    sort.__name__: sort
    for sort in (
        vllm, sglang, llama_cpp, ollama, comfyui, uvicorn, pytest_verbose, installs, ninja, boot, dockerd, kubelet, journal,
        bars, nccl, miopen, training, caught, json_lines, slurm,
    )
}  # fmt: skip


MIXED = "mixed"
PLACES = ("start", "middle", "end")


def haystack(sort: str, size: int, seed: int = 0) -> list[str]:
    """Return *size* lines of one sort of log; MIXED takes a few lines of each sort in turn."""
    random = Random(f"{sort} {size} {seed}")
    if sort != MIXED:
        return list(itertools.islice(SORTS[sort](random), size))
    logs = [make(random) for make in SORTS.values()]
    lines: list[str] = []
    while len(lines) < size:
        lines += itertools.islice(random.choice(logs), random.randrange(1, 9))
    return lines[:size]


def buried(text: str, lines: list[str], place: str, *, facts: int = 0) -> str:
    """Return *text* at the start, in the middle or at the end of *lines*; its last *facts* lines at the very end, as they are given."""
    own = text.split("\n")
    symptom, told = (own[:-facts], own[-facts:]) if facts else (own, [])
    at = {"start": 0, "middle": len(lines) // 2, "end": len(lines)}[place]
    return "\n".join([*lines[:at], *symptom, *lines[at:], *told])
