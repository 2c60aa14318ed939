"""A plan as a compose file: what compose would make something else of."""

from rocmrun.core.plan import PlannedSecret
from rocmrun.core.privilege_forms import compose_form, kubernetes_form
from tests.unit.core.plan_values import a_plan


def test_compose_fills_no_variable_of_the_jobs_in() -> None:
    """Compose takes $HOME in any value for its caller's; two dollars are one."""
    plan = a_plan(command=("sh", "-c", "echo $HOME ${X:-1}"), env=(("PRICE", "$5"),))

    service = compose_form(plan)

    assert '- "echo $$HOME $${X:-1}"' in service
    assert 'PRICE: "$$5"' in service


def test_compose_starts_what_the_plan_starts() -> None:
    """The program in the place of the image's, its directory, and what the caller hands over by name."""
    plan = a_plan(entrypoint=("python3", "-u"), workdir="/srv", env_from=("HF_TOKEN",))

    service = compose_form(plan)

    assert '    entrypoint:\n      - "python3"\n      - "-u"\n' in service
    assert '    working_dir: "/srv"\n' in service
    assert "      HF_TOKEN: null\n" in service


def test_what_a_form_cannot_hand_over_is_said() -> None:
    """A secret is rocmrun's to hand over: a file without it would start a job that does not find it."""
    secret = PlannedSecret(name="token", target="/run/secrets/token", source="env:TOKEN")
    plan = a_plan(secrets=(secret,))

    for text in (compose_form(plan), kubernetes_form(plan)):
        assert (
            "# The job reads secrets that rocmrun hands over, at /run/secrets/token: not from here.\n"
            in text
        )
