"""What `rocmrun profiles new` says: the file or the text on stdout, everything else on stderr."""

from rocmrun.console.output import emit, say, warn
from rocmrun.core.profile.new import NewProfile


def print_new(made: NewProfile, name: str) -> None:
    """Print where the profile is, or the profile itself, and what its author should know."""
    for sentence in made.changed:
        say(sentence)
    for item in made.left_out:
        say(f"left out {item.what}: {item.reason}")
    if made.shadows:
        warn(f"profile {name} hides the shipped one of its name")
    for parameter, help_text in made.missing.items():
        say(
            f"parameter {parameter} has no value yet ({help_text}): --set {parameter}=…, or a default in the file"
        )
    if made.path is None:
        emit(made.text.rstrip("\n"))
        return
    emit(made.path)
    say(f"next: rocmrun lock {name}, then rocmrun plan {name}")
