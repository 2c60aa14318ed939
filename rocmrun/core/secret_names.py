"""What a plan takes for a secret: a variable by its name, a text by its form, and neither where it only may be one."""

from rocmrun.core.secret_forms import PLANS, without
from rocmrun.core.secret_words import names_secret

__all__ = ["HIDDEN", "names_secret", "without_secrets"]

HIDDEN = "<secret>"


def without_secrets(text: str) -> str:
    """Return *text* with "<secret>" in place of what has the form of one."""
    return without(text, PLANS, lambda _: HIDDEN)
