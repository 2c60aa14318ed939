"""What is private in what a doctor looked at: to be looked for in every text that goes to strangers."""

from collections.abc import Iterator

from rocmrun.core.known_strings import Personal
from rocmrun.core.profile.words import image_words, profile_words, words_of
from rocmrun.system.caller import read_caller, values_of
from rocmrun.system.caller_words import read_personal
from rocmrun.usecases.ask import Ask
from rocmrun.usecases.doctor import Case
from rocmrun.usecases.prepare import load


def personal_of_caller() -> Personal:
    """Return what is private of whoever runs this, and of whoever they are under sudo."""
    return read_personal(read_caller().uid)


def personal_of(case: Case, ask: Ask | None) -> Personal:
    """Return what is private in what was looked at."""
    host = case.seen.host if case.seen else None
    words: list[str] = []
    secrets: list[str] = []
    if ask:
        words, secrets = list(_words_of(ask)), list(_secrets_of(ask))
    if case.prepared and case.prepared.image:
        image = case.prepared.image
        words += image_words(image.environment, (value for _, value in image.labels))
    engine = case.seen.engine if case.seen else None
    if engine and engine.identity:
        words.append(engine.identity)
    name = (host.hostname if host else None) or ""
    ids = [
        each for gpu in (host.gpus if host else ()) for each in (gpu.unique_id, gpu.hive_id) if each
    ]
    return Personal(
        hosts=(name, name.partition(".")[2], *name.split(".")),
        gpus=tuple(form for each in ids for form in _spellings(each)),
        words=tuple(words),
        secrets=tuple(secrets),
    )


def _spellings(unique_id: str) -> Iterator[str]:
    yield unique_id
    if all(digit in "0123456789abcdef" for digit in unique_id.lower()):
        yield unique_id.lstrip("0")
        yield str(int(unique_id, 16))


def _words_of(ask: Ask) -> Iterator[str]:
    search = ask.search
    places = [search.working_directory, ask.lockfile, ask.host_root, search.home]
    places += [directory.path for directory in search.directories if directory.origin != "shipped"]
    for text in (*ask.settings.values(), *(str(place) for place in places if place)):
        yield from words_of(text)
    loaded = load(ask)
    if loaded.origin != "shipped":
        yield from words_of(ask.profile)
        yield loaded.name
        yield from words_of(loaded.path)
    yield from profile_words(loaded.profile.as_data())


def _secrets_of(ask: Ask) -> Iterator[str]:
    profile = load(ask).profile
    named = [s.source.removeprefix("env:") for s in profile.secrets if s.source.startswith("env:")]
    yield from values_of([*profile.container.env_from, *profile.fetch.env_from, *named]).values()
