"""What is fetched while a job runs, and cannot be."""

from rocmrun.core.diagnosis.finding import Rule, Sign
from rocmrun.core.diagnosis.looks import all_of, any_of, text

# Names of hosts that files of the hub come from, and how resolvers and sockets say no.
_HUB = r"(?:huggingface\.co\b|\bhf\.co\b|\bhugging face\b(?! ?/)|\bthe (?:hugging ?face )?hub\b(?= ?[:,.]|$))"
_UNREACHED = r"(?:failed to resolve|could not resolve|max retries|name resolution|unreachable|connection (?:refused|error|reset|aborted)|timed out|not known|no such host|dns error|(?:can ?not|can't|could not|couldn't|unable to) (?:reach|connect)|no (?:internet|network|access))"

RULES = (
    Rule(
        kind="hf-offline",
        symptom="network",
        needs=text(r"offline|hugging ?face|hf_hub|hub\b|localentrynotfound|incompletesnapshot"),
        signs=(
            Sign(6, "a download is asked for, and downloads are switched off", text(r"offline ?mode ?is ?enabled|\boffline mode\b: true|offlinemodeisenabled|hf_hub_offline|transformers_offline|outgoing traffic has been disabled|local_files_only")),
            Sign(5, "a file of the model is not in the cache, and cannot be fetched", text(r"localentrynotfound|cannot find the requested files in the (?:local|disk|cached)|couldn'?t connect to '?https://huggingface|can'?t load (?:the )?(?:configuration|tokenizer|model)[^\n]{0,120}huggingface|we couldn'?t connect")),
            Sign(5, "huggingface.co cannot be reached", any_of(text(rf"{_HUB}[^\n]{{0,200}}{_UNREACHED}|{_UNREACHED}[^\n]{{0,200}}{_HUB}"), all_of(text(_HUB), text(r"network is unreachable|temporary failure in name resolution")))),
            Sign(5, "a model in the cache is not whole, and the rest cannot be fetched", text(r"cached snapshot for [^\n]{1,200} is incomplete")),
            Sign(5, "it has no way to the hub, and cannot load a model", all_of(text(r"air-?gap|(?:no|without) (?:an )?internet|no outbound|egress"), text(r"(?:cannot|can't|could not|unable to|fail\w*)\b[^\n]{0,40}\b(?:load|download|fetch|pull)"))),
            Sign(-4, "the hub refuses the token", text(r"gated repo|401 client error|403 client error|repository not found")),
        ),
    ),
)  # fmt: skip
