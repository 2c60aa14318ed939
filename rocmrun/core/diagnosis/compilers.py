"""What programs print where a compiler, a linker, a header or a toolkit is not there: the image's, ROCm's, CUDA's."""

from rocmrun.core.diagnosis.telling import lacking

# The image's own: C and C++, the linker's start files, ninja.
_C = r"(?:x86_64-linux-gnu-)?(?:gcc|g\+\+|cc|c\+\+|clang|clang\+\+)(?:-\d{1,2})?"
NO_C_COMPILER = (
    # triton, inductor, autoconf, meson, CMake
    r"failed to find c(?:\+\+)? compiler|no acceptable c compiler|no (?:working )?(?:c|c\+\+|cxx) compiler|compiler: \S{1,60} is not found|set the cc environment variable|unknown compiler\(s\)"
    r"|no cmake_(?:c|cxx)_compiler could be found|cmake_(?:c|cxx)_compiler not set"
    # shells, make, setuptools, Python, Rust, cgo
    rf"|\b(?:{_C}|cc1plus)\W{{0,4}}(?:: )?(?:command )?(?:not found|no such file)|no such file or directory: '{_C}'|command '{_C}' failed: no such file|unable to execute '?{_C}'?"
    rf"|linker `{_C}` not found|c compiler \"{_C}\" not found"
    # gcc itself, without its compiler proper
    r"|(?:error trying to exec|cannot execute) '?cc1(?:plus)?'?"
    # what a linker starts every program with
    r"|cannot find (?:'ld'|-l(?:stdc\+\+|gcc(?:_s)?|c|m|python\S{1,8})|crt[1in]\.o)(?![\w+-])|unable to find library -l(?:stdc\+\+|gcc(?:_s)?|c|m)(?![\w+-])"
)
NO_HEADER = r"fatal error: [^\n]{0,80}(?:file not found|no such file)|'(?:[\w./+-]{1,80}\.h(?:pp|xx)?|limits|cmath|cstdint|cstddef|iostream|string|type_traits|algorithm|utility|array|new|atomic|memory|vector|complex|initializer_list)' file not found|python\.h: no such file|include[^\n]{0,60}not found in[^\n]{0,40}include path"
# What mended it.
DEVELOPMENT_PACKAGES = r"\b(?:build-essential|libstdc\+\+-\d{1,2}-dev|libc6-dev|python3?(?:\.\d{1,2})?-dev(?:el)?|g\+\+|gcc(?:-c\+\+)?)(?![\w+.-])"
NO_NINJA = r"ninja is required to (?:load|build)|no such file or directory: 'ninja'|(?:^|[:>] )ninja: (?:command )?not found|unable to find a build program corresponding to \"(?:ninja|unix makefiles)\""
# ROCm's.
ROCM_TOOL_MISSING = (
    r"unable to find (?:ld\.lld|lld|clang|llvm\S*|hipcc)|(?:ld\.lld|hipcc|amdclang\S*|clang-offload-bundler|llvm-\w+|rocm_agent_enumerator)(?: and \S{1,60} (?:is|are|was|were))?\W{0,4}(?::\s)?(?:command |was |is )?(?:not found|no such file)"
    r"|no such file or directory: '(?:/\S{0,80}/)?(?:ld\.lld|hipcc|hipconfig|amdclang\S{0,3}|lld|rocminfo|rocm_agent_enumerator)'"
    r"|(?:could not|cannot|can't|failed to) (?:find|locate|execute) \S{0,60}(?:ld\.lld|hipcc|lld|clang|rocm (?:installation|device library(?! for gfx))|hip\b)|cannot find (?:rocm|hip) (?:installation|device library(?! for gfx)|runtime)"
    r"|invalid linker name[^\n]{0,30}lld|executable \"(?:ld\.)?lld\" doesn't exist|can't locate hip\w{0,20}\.pm"
    # torch's and aiter's builds
    r"|rocm_home environment variable is not set|rocm version file not found"
    # CMake
    r"|failed to find rocm root directory|no cmake_hip_compiler could be found|by not providing \W?find(?:hip\S{0,12}|roc\w{1,12}|miopen|rccl|amd\w{1,12})\.cmake|package configuration file provided by \"(?:hip\S{0,12}|roc\w{1,12}|miopen|rccl)\""
)
# CUDA's: what asks for them was written for it.
CUDA_TOOLKIT_MISSING = (
    r"cuda_home (?:environment variable )?(?:is )?not set|set the cuda_home|nvcc[^\n]{0,40}(?:not found|no such file)"
    r"|(?:failed to|could not) find nvcc|no cmake_cuda_compiler could be found|could not find cuda(?:toolkit)? \(missing|specify cuda_toolkit_root_dir|cuda_home does not exist|cannot find cuda installation|by not providing \W?findcuda\S{0,12}\.cmake"
)
_CUDA_HEADER = r"(?:cuda(?:_runtime(?:_api)?|_fp16|_bf16|_fp8|_profiler_api)?|cublas(?:_v2|lt)?|cudnn\w{0,20}|cusparse|cusolver\w{0,4}|curand\w{0,10}|cufft|nvtx3/\S{1,30}|nvrtc|nvml)\.h(?:pp)?"
CUDA_HEADER_MISSING = (
    rf"fatal error: \W?{_CUDA_HEADER}\W{{1,3}}(?:no such file|file not found|not found)"
)
# The same, told.
NO_COMPILER_TOLD = (
    lacking(r"(?:gcc|g\+\+|(?:c |c\+\+ )?compiler|build-essential)")
    + "|"
    + lacking(
        r"(?:python\.h|python3?-dev(?:el)?|libstdc\+\+(?:-\d{1,2})?-dev|libc6-dev|(?:header|include)(?: file)?s)"
    )
)
ROCM_TOOL_TOLD = (
    lacking(r"(?:ld\.lld|hipcc|hipconfig|rocm_agent_enumerator)")
    + r"|\b(?:hipconfig|rocminfo): (?:command )?not found"
)
CUDA_TOOLKIT_TOLD = r"\bneeds nvcc\b|only ships? (?:with )?cuda (?:kernels|binaries)"
