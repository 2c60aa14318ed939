"""Who the caller is in words, for texts that go to strangers."""

import os
import pwd

from rocmrun.system.caller_words import read_personal

# No user of this machine has it.
NOBODY = 4_000_000_000


def test_names_and_secrets_come_from_the_environment() -> None:
    """Whoever sudo was called by is named too; a variable that is no secret is left alone."""
    environment = {
        "USER": "root", "SUDO_USER": "tsuzuki", "HOME": "/home/mwangi", "HOSTNAME": "gpu-17",
        "HF_TOKEN": "hf_planted", "OMP_NUM_THREADS": "8",
    }  # fmt: skip

    found = read_personal(NOBODY, environment)

    assert {"tsuzuki", "mwangi"} <= set(found.users)
    assert {"gpu-17", os.uname().nodename} <= set(found.hosts)
    assert found.secrets == ("hf_planted",)


def test_the_database_names_the_process_s_own_user() -> None:
    """Where the environment says nothing at all."""
    assert pwd.getpwuid(os.getuid()).pw_name in read_personal(NOBODY, {}).users
