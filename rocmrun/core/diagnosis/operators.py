"""Operators: extensions without a build for ROCm or for this GPU."""

from rocmrun.core.diagnosis.finding import Rule, Sign
from rocmrun.core.diagnosis.looks import any_of, text, told
from rocmrun.core.diagnosis.words import ATTENTION

_QUANTIZERS = r"bitsandbytes|\bbnb\b|auto_?gptq|gptqmodel|exllama|\bawq\b|autoawq|marlin|\bhqq\b|quark|torchao|fbgemm"
_LACKING = r"without gpu support|could not (?:find|load|import)|not (?:found|available|installed|supported|compiled|built)|no such file|cannot (?:open|import)|no module named|unavailable|undefined symbol|failed to (?:load|import)|unsupported|error"

RULES = (
    Rule(
        kind="quantization-ext-not-rocm",
        needs=text(_QUANTIZERS),
        signs=(
            Sign(6, "a library for quantised weights has no build for this ROCm", text(rf"(?:{_QUANTIZERS})[^\n]{{0,200}}(?:{_LACKING})|(?:{_LACKING})[^\n]{{0,200}}(?:{_QUANTIZERS})")),
            Sign(4, "it takes its build for the CPU", text(r"load\w{0,6}[^\n]{0,160}libbitsandbytes_cpu")),
            Sign(1, "it looked for a file of another ROCm version", text(r"_rocm\d\d\b|libbitsandbytes_(?:rocm|hip|cpu)")),
            Sign(-3, "it is a warning about an experimental build", text(r"experimental")),
        ),
    ),
    Rule(
        kind="flash-attn-missing",
        needs=any_of(text(ATTENTION), text(r"no available kernel")),
        signs=(
            Sign(5, "no kernel for attention is built for this GPU", text(r"no available kernel")),
            Sign(5, "flash attention is not there", text(rf"(?:{ATTENTION})[^\n]{{0,120}}(?:not (?:used|compiled|available|supported|found|installed|enabled)|no module|missing|no such file|unsupported|file not found|error|disabled|only supports|failed)|(?:not supported|invalid|unsupported)[^\n]{{0,20}}(?:{ATTENTION})|(?:{ATTENTION})[^\n]{{0,300}}does not support this problem|(?:no module named|cannot import|not compiled with|could not import|requires|failed building wheel for|not built with|no such file)[^\n]{{0,80}}(?:{ATTENTION})")),
            Sign(1, "the target is named", told(r"gfx")),
        ),
    ),
)  # fmt: skip
