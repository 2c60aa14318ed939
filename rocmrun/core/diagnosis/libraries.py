"""Names of the libraries of ROCm and of CUDA, as loaders and linkers print them."""

from rocmrun.core.diagnosis.telling import lacking
from rocmrun.core.diagnosis.words import NO_FILE

_ROCM = r"(?:hip_hcc|miopen|roctx64|rocblas|hipblas(?:lt)?|amdhip64|hsa-runtime64|hsakmt|rocsparse|rocsolver|rccl|rocm[-_]smi64|rocm[-_]core|amd_comgr|hiprtc\S{0,20}|rocfft|hipfft\w?|hiprand|rocrand|roctracer64|hipsparse(?:lt)?|hipsolver|amd_smi|rocprofiler\S{0,20}|rocalution|migraphx\S{0,10}|c10_hip|torch_hip|drm_amdgpu|hipfile|rocjpeg|rocdecode|rocm_sysdeps_\w{1,30})"
# What ROCm's libraries need beside each other.
_BESIDE_ROCM = r"(?:drm|numa|elf|omp5?)"
_CUDA = r"(?:c10_cuda|torch_cuda\w*|cudart|cublas\w*|cudnn\w*|nvrtc\S{0,20}|cuda|nvinfer\S{0,20}|cusparse\w*|cufft\w?|curand|cusolver\w*|nccl|nvjitlink|nvtoolsext|nvidia-ml|cupti)"
ROCM_LIBRARY = rf"lib(?:{_ROCM}|{_BESIDE_ROCM})\b[^\s:]{{0,30}}\.so"
CUDA_LIBRARY = rf"lib{_CUDA}\b[^\s:]{{0,30}}\.so"


def _missing(library: str, name: str) -> str:
    return (
        rf"{library}[^\n]{{0,120}}{NO_FILE}|{NO_FILE}[^\n]{{0,120}}{library}"
        # a loader that stops at the name, and what loads by hand
        rf"|error while loading shared libraries: {library}|(?:unable to|could not|cannot|can't|failed to) (?:load|find|open|locate) (?:(?:shared|dynamic|the) )?(?:library )?\W?(?:/\S{{0,80}}/)?{library}|dlopen\W{{1,3}}{library}\S{{0,10}} failed"
        # ld, lld
        rf"|cannot find -l{name}(?![\w-])|unable to find library -l{name}(?![\w-])"
    )


def _told_missing(library: str) -> str:
    versioned = rf"{library}(?:\.\d{{1,3}})*"
    return rf"{lacking(versioned)}|(?:import|load)\w{{0,5}} (?:fails|failed|error)[^\n]{{0,40}}{library}"


ROCM_LIBRARY_MISSING = (
    _missing(ROCM_LIBRARY, _ROCM)
    # ld.so, cut before its reason
    + rf"|error while loading shared libraries: \W?{ROCM_LIBRARY}"
    # triton's driver
    + rf"|cannot locate {ROCM_LIBRARY}|does not point to a valid {ROCM_LIBRARY}"
)
CUDA_LIBRARY_MISSING = (
    _missing(CUDA_LIBRARY, _CUDA)
    # triton's driver, NVML's and numba's
    + rf"|{CUDA_LIBRARY} cannot found|nvml shared library not found|cuda driver library cannot be found"
)
ROCM_LIBRARY_TOLD = _told_missing(ROCM_LIBRARY)
CUDA_LIBRARY_TOLD = _told_missing(CUDA_LIBRARY)
# The system's C or C++ library is older than the one that something was built with.
OLD_SYSTEM_LIBRARY = r"version [`'](?:glibcxx|glibc|cxxabi|gcc)_[\d.]{1,8}' not found"
