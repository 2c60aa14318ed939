"""How engines, inits, supervisors, shells and languages say that a program could not be started."""

_QUOTE = r"['\"`‘]?"


def not_found(program: str) -> str:
    """Return a pattern for: *program* (a pattern of its own) was not there to be started."""
    return (
        # containerd, runc, Docker, apptainer, and whatever else is written in Go
        rf"\\?\"{program}\\?\": (?:executable file not found|stat [^\n]{{0,80}}no such file)"
        # crun
        rf"|executable file [`'\"]{program}[`'\"] not found"
        # tini, dumb-init, systemd, supervisord
        rf"|exec {program} failed: no such file|\[dumb-init\] {program}: no such file"
        rf"|exec spawning {program}: no such file|locate executable {_QUOTE}{program}{_QUOTE}: no such file|can't find command '{program}'"
        # Node, Go
        rf"|spawn {program} enoent|fork/exec {program}: no such file"
        # coreutils' nohup and timeout, s6
        rf"|failed to run command {_QUOTE}{program}['\"’]?: no such file|unable to (?:spawn|exec) {program}: no such file|\bexec {program}: no such file"
        # shells and env
        rf"|(?:^|[:>] ){program}: (?:command )?not found|command not found: {program}\s*$|unknown command: {program}\s*$"
        rf"|\benv: {_QUOTE}{program}['\"’]?: no such file|bad interpreter: {program}\b|{program}: bad interpreter: no such"
        # Python
        rf"|no such file or directory: '{program}'"
    )


def refused(program: str) -> str:
    """Return a pattern for: *program* (a pattern of its own) may not be executed."""
    return (
        rf"exec {program} failed: permission denied|\[dumb-init\] {program}: permission denied|exec spawning {program}: permission denied"
        rf"|command at '{program}' is not executable|no permission to run command '{program}'"
        rf"|spawn {program} eacces|fork/exec {program}: permission denied|open executable: permission denied"
        rf"|failed to run command {_QUOTE}{program}['\"’]?: permission denied|unable to (?:spawn|exec) {program}: permission denied|fatal: {{1,3}}stat {program}: permission denied"
    )
