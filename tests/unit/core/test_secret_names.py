"""Names of variables that hold secrets."""

import pytest

from rocmrun.core.command_line import Options, replacing
from rocmrun.core.secret_names import HIDDEN, names_secret, without_secrets
from rocmrun.errors import UsageError

SECRET = (
    "HF_TOKEN", "hf_token", "MAD_SECRETS_HFTOKEN", "OPENAI_API_KEY", "DB_PASSWORD", "CLIENT_SECRET",
    "AWS_SECRET_ACCESS_KEY", "AWS_ACCESS_KEY_ID", "TOKEN", "FRIGATE_RTSP_PASSWORD", "APIKEY",
    "DB_PASS", "SMTP_PASS", "PASSWD", "MYSQL_PWD", "PRIVATE_KEY", "TLS_PRIVATE_KEY_PEM", "SSH_KEY",
    "CREDENTIALS", "DB_CREDENTIALS", "REGISTRY_CREDS", "GITHUB_PAT", "SIGNING_KEY",
    "AZURE_STORAGE_KEY", "OLD_PASSWORD",
)  # fmt: skip
PLAIN = (
    "TOKENIZERS_PARALLELISM", "MAX_TOKENS", "MAX_TOKEN", "PAD_TOKEN", "HF_TOKEN_PATH",
    "PASSWORD_FILE", "SECRETARY", "HF_HOME", "KEY", "MONKEY", "KEYBOARD", "XKB_KEYBOARD", "SORT_KEY",
    "PUBLIC_KEY", "PASSTHROUGH", "GPU_PASSTHROUGH", "PASS_RATE", "FORWARD_PASS", "TWO_PASS", "OLD_PWD",
    "COMPASS", "BYPASS", "PWD", "OLDPWD", "PATH", "LD_LIBRARY_PATH", "PATTERN", "PYTHONPATH",
    "GOOGLE_APPLICATION_CREDENTIALS", "AWS_SHARED_CREDENTIALS_FILE", "SECRET_NAME",
    "PASSWORD_LENGTH", "TOKEN_TTL", "HF_HUB_DISABLE_IMPLICIT_TOKEN", "CACHE_KEY_PREFIX",
)  # fmt: skip


@pytest.mark.parametrize("name", SECRET)
def test_a_secret_is_refused_on_the_command_line(name: str) -> None:
    """Every user of the host can read it there; the message does not repeat it."""
    assert names_secret(name)
    with pytest.raises(UsageError) as caught:
        replacing(Options(env=(f"{name}=s3cret",)))
    assert f"-e {name} without a value" in (caught.value.hint or "")
    assert "s3cret" not in caught.value.message + (caught.value.hint or "")


@pytest.mark.parametrize("name", PLAIN)
def test_other_names_are_not_taken_for_secrets(name: str) -> None:
    """A limit, a tokenizer and a path are none."""
    assert not names_secret(name)
    assert replacing(Options(env=(f"{name}=1",))) == {"container": {"env": {name: "1"}}}


def test_a_name_alone_and_an_empty_value_are_fine() -> None:
    """Neither says a secret."""
    assert replacing(Options(env=("HF_TOKEN", "HF_TOKEN="))) == {"container": {"env": {"HF_TOKEN": ""}}}  # fmt: skip


@pytest.mark.parametrize(
    "text",
    [
        "hf_abcdefghijklmnopqrstuvwxyz",
        "serve --api-key s3cr",
        "curl -H 'Authorization: Bearer abcdefgh1'",
        "http://user:pass@proxy:1",
    ],
)
def test_a_secret_is_known_by_its_form(text: str) -> None:
    """Whatever its variable is called."""
    assert HIDDEN in without_secrets(text)
    assert without_secrets(without_secrets(text)) == without_secrets(text)


@pytest.mark.parametrize(
    "text",
    [
        "hf_home",
        "--api-key \ue000$KEY\ue001",
        "Bearer \ue000$TOKEN\ue001",
        "http://proxy:3128",
        "http://\ue000$USER\ue001:\ue000$PASS\ue001@proxy",
        "meta-llama/Llama-3.1-8B",
        "a:b@c",
    ],
)
def test_other_texts_are_left_alone(text: str) -> None:
    """An expression says where a secret is, and not what it is."""
    assert without_secrets(text) == text
