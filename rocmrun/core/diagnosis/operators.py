"""Operators: extensions without a build for ROCm or for this GPU."""

from rocmrun.core.diagnosis.finding import Rule, Sign
from rocmrun.core.diagnosis.looks import absent, all_of, any_of, text, told
from rocmrun.core.diagnosis.words import ATTENTION

_QUANTIZERS = r"bitsandbytes|\bbnb\b|auto_?gptq\w{0,8}|gptqmodel|exllama|\bawq(?:_ext\w{0,4})?\b|autoawq|marlin|\bhqq\b|quark|torchao|fbgemm"
_LACKING = r"without gpu support|could not (?:find|load|import)|not (?:found|available|installed|supported|compiled|built)|no such file|cannot (?:open|import)|no module named|unavailable|undefined symbol|failed to (?:load|import)|unsupported|does(?: not|n't) support|no support|(?:has|have) no (?:\w+ )?(?:wheels?|builds?|binar\w{1,4}|kernels?)\b|(?:does not|doesn't|not) work(?:ing)?\b[^\n]{0,20}\b(?:amd|rocm|hip)\b|error"
_QUANTIZER_LACKING = (
    rf"(?:{_QUANTIZERS})[^\n]{{0,200}}(?:{_LACKING})|(?:{_LACKING})[^\n]{{0,200}}(?:{_QUANTIZERS})"
)
# Methods that have kernels for CUDA alone, or none on ROCm, as vLLM, SGLang and others say of them.
_METHODS = r"(?:gptq|awq|bitblas|machete|marlin|nunchaku|svdquant|wna16|exllama|cutlass|humming|mxfp4|nvfp4|quip|aqlm|eetq|quantiz|quantis)\w*"
_NOT_ON_ROCM = r"only (?:supported|available) (?:on|for) (?:nvidia|cuda)|not (?:currently |yet )?(?:supported|available) (?:in|on|by|for) (?:rocm|amd|hip)\b|currently not supported in (?:rocm|amd|hip)\b"
_FOR_CUDA_ALONE = text(
    rf"{_METHODS}[^\n]{{0,160}}(?:{_NOT_ON_ROCM}|not currently installed)|(?:{_NOT_ON_ROCM})[^\n]{{0,80}}{_METHODS}"
)

RULES = (
    Rule(
        kind="quantization-ext-not-rocm",
        needs=any_of(text(rf"{_QUANTIZERS}|setup failed despite|str2optimizer32bit"), _FOR_CUDA_ALONE),
        signs=(
            Sign(6, "a method of quantisation has no kernels for ROCm", all_of(_FOR_CUDA_ALONE, absent(text(_QUANTIZER_LACKING)))),
            Sign(6, "a library for quantised weights has no build for this ROCm", text(_QUANTIZER_LACKING)),
            Sign(6, "bitsandbytes says that it found no build to load", text(r"(?:cuda|rocm) setup failed despite (?:gpu|cuda|rocm) being available|name 'str2optimizer32bit' is not defined|\bbin /\S{1,200}/libbitsandbytes_cpu\.so")),
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
            Sign(5, "flash attention is not there", text(rf"(?:{ATTENTION})[^\n]{{0,120}}(?:not (?:used|compiled|available|supported|found|installed|enabled)|no module|missing|no such file|unsupported|file not found|error|disabled|only supports|failed|fails\b|does(?: not|n't) (?:support|work)|(?:has|have) no (?:\w+ )?(?:wheels?|builds?|binar\w{1,4}|kernels?)\b)|(?:not supported|invalid|unsupported)[^\n]{{0,20}}(?:{ATTENTION})|(?:{ATTENTION})[^\n]{{0,300}}does not support this problem|(?:no module named|no operator found for|cannot import|not compiled with|could not import|requires|failed building wheel for|failed to build|not built with|no such file)[^\n]{{0,80}}(?:{ATTENTION})")),
            Sign(1, "the target is named", told(r"gfx")),
        ),
    ),
)  # fmt: skip
