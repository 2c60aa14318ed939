"""What is private is replaced, and what a cause is told by is not."""

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from rocmrun.core.diagnosis.finding import Finding
from rocmrun.core.known_strings import Personal, base64_cores, percent_encoded
from rocmrun.core.public_words import is_public, public_words
from rocmrun.core.redaction import Redactor
from rocmrun.system.package_data import read_findings, read_public_words
from tests.unit.core.diagnosis.catalogue import FOURTH, LATER, THIRD, cases, found_in, held_out
from tests.unit.core.diagnosis.other_texts import TEXTS

WORDS = public_words(read_findings(), read_public_words())


def redactor(**personal: tuple[str, ...]) -> Redactor:
    return Redactor(Personal(**personal), WORDS)


def shape(found: tuple[Finding, ...]) -> list[tuple[str, str]]:
    return [(finding.kind.slug, finding.confidence) for finding in found]


def through(text: str) -> str:
    """Return *text* as a bundle has it."""
    made = redactor()
    shown = made.text(text)
    made.learn()
    return str(made.known(shown))


def test_every_report_is_understood_as_before() -> None:
    """Kinds, their order and their confidence: marks look like names to the rules."""
    reports = (*cases(), *held_out(), *held_out(LATER), *held_out(THIRD), *held_out(FOURTH))
    texts = {each.name: each.text for each in reports}
    texts |= {f"{kind}, {text[:40]}": text for kind, text in TEXTS}

    assert [
        n for n, text in texts.items() if shape(found_in(text)) != shape(found_in(through(text)))
    ] == []


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("open('/srv/models/acme-llama/x.bin')", "open('/srv/models/PATH-1/x.bin')"),
        ("/home/jdoe/.cache/miopen: denied", "/home/USER-1/.cache/miopen: denied"),
        ("HOME=/home/rocmrun", "HOME=/home/rocmrun"),
        ("'/mnt/Team Blue/w.pt'", "'/mnt/PATH-1/w.pt'"),
        ("../jdoe/run.sh", "../PATH-1/run.sh"),
        ("registry.acme.io:5000/ml/thing:rocm6.2", "REGISTRY-1/IMAGE-1/IMAGE-2:rocm6.2"),
        ("docker.io/rocm/pytorch:rocm7.2.4_ubuntu24.04_py3.12_pytorch_release_2.9.1", "docker.io/rocm/pytorch:rocm7.2.4_ubuntu24.04_py3.12_pytorch_release_2.9.1"),
        ("https://u:p@repo.acme.io/a/b?token=x", "https://HOST-1/a/b?<query>"),
        ("https://github.com/ROCm/ROCm/issues/31", "https://github.com/ROCm/ROCm/issues/31"),
        ("tcp://10.0.0.9:2375 and 127.0.0.1:8000", "tcp://HOST-1:2375 and 127.0.0.1:8000"),
        ("10.1.2.3 again 10.1.2.3, not 10.1.2.4", "IP-1 again IP-1, not IP-2"),
        ("fe80::1a2b:3c4d/64 ::1", "IP-1/64 ::1"),
        ("link/ether 00:1A:2b:3c:4d:5e", "link/ether MAC-1"),
        ("driver 6.10.5.1", "driver 6.10.5.1"),
        ("build 999.1.2.3", "build 999.1.2.3"),
        ("~jdoe/x", "~USER-1/x"),
        ("uid=1000(jdoe) gid=44(video)", "uid=1000(USER-1) gid=44(video)"),
        ("crw-rw---- 1 root jdoe 226, 128 /dev/dri/renderD128", "crw-rw---- 1 root USER-1 226, 128 /dev/dri/renderD128"),
        ("mi300-rack3:812:901 [0] NCCL INFO Bootstrap", "HOST-1:812:901 [0] NCCL INFO Bootstrap"),
        ("[mi300-rack3:00812] *** Process received signal ***", "[HOST-1:00812] *** Process received signal ***"),
        ("srun: error: mi300-rack3: task 0: Exited", "srun: error: HOST-1: task 0: Exited"),
        ("*** JOB 81 ON mi300-rack3 CANCELLED", "*** JOB 81 ON HOST-1 CANCELLED"),
        ("failed to connect to [mi300-rack3]:29500", "failed to connect to [HOST-1]:29500"),
        ("Failed to resolve 'huggingface.co'", "Failed to resolve 'huggingface.co'"),
        ("  host      : mi300-rack3", "  host      : HOST-1"),
        ("[pod/acme-chat-7d9f/vllm] up", "[pod/NAME-1/vllm] up"),
        ("ssh head.acme.example", "ssh HOST-1"),
        ("Unique ID: 0x7f3a9c1d2e4b5a60", "Unique ID: ID-1"),
        ("prompt: 'who is Jane?', n=1", 'prompt: "<text>", n=1'),
        (r"C:\Users\Jane\My Models\x y", "PATH-1 y"),
        ("memo: alice.b@gpu-rack3:/app# python", "memo: USER-1@HOST-1:/app# python"),
        ("(base) jdoe@gpu-rack3 ~ % ls", "(base) USER-1@HOST-1 ~ % ls"),
        ("root@gpu-rack3:/app# ls", "root@HOST-1:/app# ls"),
        ("ssh -p 2222 jdoe@gpu-rack3", "ssh -p 2222 USER-1@HOST-1"),
        ("jdoe@gpu-rack3's password:", "USER-1@HOST-1's password:"),
        ("jdoe:x:1000:1000:Jane Doe,,,:/home/jdoe:/bin/bash", "USER-1:x:1000:1000:USER-2:/home/USER-1:/bin/bash"),
        ("session opened for user root by jdoe(uid=1000)", "session opened for user root by USER-1(uid=1000)"),
        ("sudo usermod -aG render jdoe", "sudo usermod -aG render USER-1"),
        ("SLURM_JOB_USER=jdoe", "SLURM_JOB_USER=USER-1"),
        ("SLURM_NODELIST=rack[001-004,7]", "SLURM_NODELIST=HOST-1"),
        ("ip-10-1-2-3 kernel: amdgpu", "HOST-1 kernel: amdgpu"),
        ("node_guid: 0x506b4b0300c4a5b2", "node_guid: ID-1"),
        ("Serial Number: 1XYZ9", "Serial Number: ID-1"),
        ("pull access denied for acmecorp/private, repository", "pull access denied for IMAGE-1/private, repository"),
        ("Unable to find image 'acmecorp/x:latest' locally", "Unable to find image 'IMAGE-1/x:latest' locally"),
        ("-----BEGIN RSA PRIVATE KEY-----\nMIIEow\nshort==\n-----END RSA PRIVATE KEY-----", "<secret>\n<secret>\n<secret>\n<secret>"),
    ],
)  # fmt: skip
def test_marks_stand_for_what_is_private(text: str, shown: str) -> None:
    """The same mark for the same thing; the rest stays, line by line."""
    assert redactor().text(text) == shown


@pytest.mark.parametrize(
    "text",
    [
        "Unable to open /dev/kfd read-write: Permission denied",
        "crw-rw---- 1 root render 226, 128 Nov 30 10:00 /dev/dri/renderD128",
        'nodes: {"/dev/kfd": "root:992 0660"}',
        "[rank0]: torch.cuda.OutOfMemoryError: HIP out of memory. Tried to allocate 2.00 GiB",
        "libamdhip64.so.6: cannot open shared object file: No such file or directory",
        'File "/opt/venv/lib/python3.12/site-packages/vllm/worker/model_runner.py", line 120, in load_model',
        "at::native::copy_ c10::Error _ZN2at6native29vectorized_elementwise_kernelILi4ENS0_11FillFunctorIfEEEviT0_T1_",
        "amdgpu 0000:63:00.0: [gfxhub] page fault (src_id:0 ring:24 vmid:3) at 0x00007f8812345678",
        "HSA_OVERRIDE_GFX_VERSION=11.0.0 HIP_VISIBLE_DEVICES=0,1 NCCL_SOCKET_IFNAME=lo",
        "0 1000 1\n1 100000 65536",
        "exec: \"python3\": executable file not found in $PATH",
        "and/or read/write 12:34:56 3.5/4.0",
        "sudo usermod -aG render $USER",
        "docker run --user 1000:1000 -u 65532:65532 --group-add 44",
        "prompt tokens: 512, max_tokens=512, pad_token: 0",
    ],
)  # fmt: skip
def test_what_tells_a_cause_stays(text: str) -> None:
    """Errors, numbers, modes, versions, symbols, and paths that every machine has."""
    assert redactor().text(text) == text


@pytest.mark.parametrize(
    "written",
    ["wkowalski", "WKowalski", "x_wkowalski_y", "wkowalski2", *sorted(base64_cores("wkowalski"))],
)  # fmt: skip
def test_a_known_string_is_found_however_it_is_written(written: str) -> None:
    """In any case, inside other words, for URLs, in base64 at any offset."""
    shown = redactor(users=("wkowalski",)).text(f"before {written} after")

    assert written not in shown
    assert "USER-1" in shown


def test_a_name_is_found_whatever_its_accents_are_made_of() -> None:
    """Letters with accents and accents after letters, and as Python and JSON quote them."""
    made = redactor(users=("jörg",))
    written = ["jörg", "jo\u0308rg", r"j\xf6rg", r"j\u00f6rg", "JO\u0308RG"]

    assert [made.text(f"was {each} here") for each in written] == ["was USER-1 here"] * 5


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ('"password": "correct horse battery"', '"password": "<secret>"'),
        ("{'api_key': 'a b', 'x': 1}", "{'api_key': '<secret>', 'x': 1}"),
        ("--password 'it is \\' this' -v", "--password '<secret>' -v"),
        ("DB_PASSWORD=7", "DB_PASSWORD=<secret>"),
        ("passwd: 123456, next", "passwd: <secret>, next"),
        ("Cookie: session=ab; id=c\nnext", "Cookie: <secret>\nnext"),
        ("Authorization: Digest a=b, c=d", "Authorization: <secret>"),
        ("curl -s -u me:pa:ss http://localhost/", "curl -s -u me:<secret> http://localhost/"),
        ("docker login -u me -p hunter2 x", "docker login -u me -p <secret> x"),
        ("mysql -h db -phunter2", "mysql -h db -p<secret>"),
        ("AIza" + "Sy0" * 12, "<secret>"),
        ("dckr_pat_abcdefghijklmnop", "<secret>"),
    ],
)
def test_a_secret_goes_whole(text: str, shown: str) -> None:
    """With blanks, short, a number, or told by the option before it."""
    assert redactor().text(text) == shown


def test_a_name_with_other_letters_is_found_in_urls() -> None:
    """In either case of the digits."""
    made = redactor(users=("Jürgen Döring",))
    quoted = percent_encoded("Jürgen Döring")

    assert made.text(f"q={quoted} {quoted.lower()} Jürgen+Döring") == "q=USER-1 USER-1 USER-1"


def test_a_short_name_is_no_part_of_a_word() -> None:
    """Nobody could read a log with "max" out of every "maximum"."""
    made = redactor(users=("zoe",))

    assert made.text("zoe's zoetrope, user_zoe") == "USER-1's zoetrope, user_USER-1"


def test_a_public_word_tells_nobody() -> None:
    """A machine called "gpu" stays what half of all words are; a secret that long goes all the same."""
    assert redactor(hosts=("gpu",), users=("docker",)).text("gpu docker") == "gpu docker"
    assert redactor(secrets=("permission",)).text("x permission y") == "x <secret> y"


def test_a_name_that_was_learned_is_known_everywhere() -> None:
    """It had a sign in one place only."""
    made = redactor()
    first = made.text("open('/home/tsuzuki/x')\nasked tsuzuki")
    made.learn()

    assert made.known({"log": first}) == {"log": "open('/home/USER-1/x')\nasked USER-1"}


def test_values_of_secrets_and_ids_go_by_their_key() -> None:
    """Whatever they look like, also numbers."""
    value = {"api_token": "plain", "unique_id": 123456789, "nested": [{"Serial": "A1"}], "count": 3}

    assert redactor().value(value) == {
        "api_token": "<secret>", "unique_id": "ID-1", "nested": [{"Serial": "ID-2"}], "count": 3,
    }  # fmt: skip


def test_one_gpu_has_one_mark_however_its_id_is_written() -> None:
    """Hexadecimal, with what tools put before it, and decimal."""
    unique = 0x7F3A9C1D2E4B5A60
    made = redactor(gpus=(f"{unique:016x}", str(unique)))

    assert made.text(f"GPU-{unique:x} 0x{unique:x} {unique}") == "GPU-GPU-1 0xGPU-1 GPU-1"


def test_escapes_of_json_hide_nothing() -> None:
    """A line of a JSON log is read as its readers read it."""
    made = redactor(users=("jdoe42", "Jürgen"))

    assert (
        made.text(r'{"log": "by \u006adoe42, J\u00fcrgen\u000a"}')
        == r'{"log": "by USER-1, USER-2\u000a"}'
    )


@pytest.mark.parametrize(
    ("reference", "shown"),
    [
        ("rocm/pytorch:latest", "rocm/pytorch:latest"),
        ("docker.io/acme/chat:rocm6.2@sha256:ab", "docker.io/IMAGE-1/IMAGE-2:rocm6.2@DIGEST-1"),
        ("docker.io/rocm/pytorch@sha256:ab", "docker.io/rocm/pytorch@sha256:ab"),
        ("localhost:5000/rocm/vllm:blue-moon-edition", "localhost:5000/rocm/vllm:TAG-1"),
        ("127.0.0.1:5055/rocm/vllm:1", "127.0.0.1:5055/rocm/vllm:1"),
    ],
)  # fmt: skip
def test_an_image_keeps_what_everybody_knows(reference: str, shown: str) -> None:
    """The digest too where the repository is public; of another it would tell which it is."""
    assert redactor().image(reference) == shown


def test_as_many_lines_as_before() -> None:
    """Findings quote lines by number."""
    text = "a\r\nb\rc\n\n\x1b[31m/home/x/y\x1b[0m\n"

    assert redactor().text(text).count("\n") == 5


@pytest.mark.parametrize(
    "name", ["rocm7", "python3.12", "ubuntu24.04", "vllm-openai-rocm", "renderD128", "70b"]
)
def test_public_names(name: str) -> None:
    """Words of this program's pages, versions, devices."""
    assert is_public(name, WORDS)


@pytest.mark.parametrize(
    "name", ["jdoe", "jdoe42", "49151234567", "acme-llama", "x7Kq", "4b8b0127", "é"]
)
def test_other_names(name: str) -> None:
    """Whatever is not known to be public."""
    assert not is_public(name, WORDS)


MARKS = "user-1 host-1 word-1 secret masked path-1 name-1 image-1 registry-1 tag-1 id-1 text query value"
SURROUNDINGS = st.text(alphabet=" abcXYZ019_-./:=@\"'%\\\n{}[]()", max_size=12)
NAMES = st.from_regex(r"[a-z]{2}[a-z0-9_-]{3,14}[a-z0-9]", fullmatch=True)


@settings(max_examples=150, deadline=None)
@given(
    name=NAMES,
    kind=st.sampled_from(["users", "hosts", "words", "secrets"]),
    before=SURROUNDINGS,
    after=SURROUNDINGS,
    upper=st.booleans(),
)
def test_whatever_is_known_never_comes_through(
    name: str, kind: str, before: str, after: str, *, upper: bool
) -> None:
    """Whoever it is, wherever it stands, however it is written: in texts, in keys, below them."""
    assume(not is_public(name, WORDS) and name not in MARKS)
    made = redactor(**{kind: (name,)})
    line = before + (name.upper() if upper else name) + after

    shown = made.value({"text": line, line: [{"deep": line}], "path": made.path(f"/srv/{name}/x")})

    assert name not in repr(shown).lower()
    assert made.text(line).count("\n") == line.count("\n")
