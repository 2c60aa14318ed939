/* A stand-in for libamdhip64 and libhiprtc, for hardware that the machine of the tests lacks.
 *
 * It proves nothing about HIP itself: it answers the calls that the probe makes, with memory of the
 * host and three kernels written here, so that a test can make one thing wrong. What Debian's real
 * libamdhip64 says where there is no GPU is tested in tests/docker.
 *
 * STUB_HIP_FAULTS   what goes wrong, and on which device: ",copy@1,hang@2," ("@*": on every one)
 * STUB_HIP_DEVICES  how many devices there are, 2 unless it is set
 *
 * -DWITH_RUNTIME makes libamdhip64, -DWITH_RTC makes libhiprtc, both together make what ROCm 5 has;
 * -DROCM=5 leaves out hipGetDevicePropertiesR0600 and gives the older layout.
 */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#ifndef ROCM
#define ROCM 6
#endif

enum { SUCCESS = 0, INVALID_VALUE = 1, OUT_OF_MEMORY = 2, NO_DEVICE = 100, UNKNOWN_CODE = 4711 };

static int device_count(void) {
    const char *text = getenv("STUB_HIP_DEVICES");
    return text ? atoi(text) : 2;
}

/* Return the device that the environment leaves, -1 for all of them, -2 for none. */
static int own(void) {
    const char *text = getenv("HIP_VISIBLE_DEVICES");
    if (!text) return -1;
    if (!*text || atoi(text) >= device_count()) return -2;
    return atoi(text);
}

static int happens(const char *fault) {
    const char *faults = getenv("STUB_HIP_FAULTS");
    char here[64], everywhere[64];
    if (!faults) return 0;
    snprintf(here, sizeof here, ",%s@%d,", fault, own());
    snprintf(everywhere, sizeof everywhere, ",%s@*,", fault);
    return strstr(faults, here) || strstr(faults, everywhere);
}

#ifdef WITH_RUNTIME

static const size_t TOTAL = (size_t)1 << 34;
static size_t used;

int hipRuntimeGetVersion(int *version) {
    *version = ROCM == 5 ? 50221153 : 60241134;
    return SUCCESS;
}

int hipDriverGetVersion(int *version) { return hipRuntimeGetVersion(version); }

int hipGetDeviceCount(int *count) {
    *count = own() == -1 ? device_count() : own() == -2 ? 0 : 1;
    if (happens("sees_all")) *count = device_count();
    if (happens("silent_zero")) { *count = 0; return SUCCESS; }
    return *count ? SUCCESS : NO_DEVICE;
}

int hipDeviceGetName(char *name, int length, int device) {
    (void)device;
    snprintf(name, length, "%s", happens("nameless") ? "gfx942" : "Stand-in Instinct");
    return SUCCESS;
}

int hipDeviceGetPCIBusId(char *text, int length, int device) {
    int bus = 0x63 + (own() < 0 ? device : own());
    if (happens("address")) bus = 0x05;
    if (happens("twin")) bus = 0x63;
    snprintf(text, length, "0000:%02x:00.0", bus);
    return SUCCESS;
}

int hipDeviceGetUuid(char *uuid, int device) {
    int bus = 0x63 + (own() < 0 ? device : own());
    char text[17];
    if (happens("twin")) bus = 0x63;
    snprintf(text, sizeof text, "f330dc00000000%02x", bus);
    memcpy(uuid, text, 16);
    return SUCCESS;
}

/* The name comes first in both layouts; gcnArchName where ROCm 5 and ROCm 6 have it, more or less. */
static int properties(char *to, size_t architecture) {
    memset(to, 0, 1472);
    hipDeviceGetName(to, 256, 0);
    for (size_t at = 256; at < architecture; ++at) to[at] = (char)(at * 37);
    strcpy(to + architecture, happens("architecture") ? "gfx1100" : "gfx942:sramecc+:xnack-");
    return SUCCESS;
}

int hipGetDeviceProperties(char *to, int device) {
    (void)device;
    return properties(to, 396);
}

#if ROCM >= 6
int hipGetDevicePropertiesR0600(char *to, int device) {
    (void)device;
    return properties(to, 1160);
}
#endif

int hipMemGetInfo(size_t *free_bytes, size_t *total) {
    *free_bytes = happens("memory") ? 2 * TOTAL : TOTAL - used;
    *total = TOTAL;
    return SUCCESS;
}

int hipMalloc(void **address, size_t size) {
    if (happens("hang")) sleep(1000);
    if (happens("abort")) { fputs("Memory access fault by GPU node-1\n", stderr); abort(); }
    if (happens("killed")) raise(SIGKILL);
    if (happens("exit0")) _exit(0);
    if (happens("out_of_memory")) return OUT_OF_MEMORY;
    if (happens("unknown_code")) return UNKNOWN_CODE;
    *address = malloc(size);
    used += size;
    return SUCCESS;
}

int hipFree(void *address) { free(address); return SUCCESS; }

int hipMemcpy(void *to, const void *from, size_t size, int kind) {
    memcpy(to, from, size);
    if (kind == 2 && happens("copy")) ((char *)to)[size / 2] ^= 1;
    return SUCCESS;
}

int hipMemset(void *address, int value, size_t size) {
    memset(address, value, happens("memset") ? size - 1 : size);
    return SUCCESS;
}

int hipDeviceSynchronize(void) { return happens("synchronize") ? INVALID_VALUE : SUCCESS; }

int hipModuleLoadData(void **module, const void *image) {
    *module = (void *)image;
    return memcmp(image, "STUB", 4) ? INVALID_VALUE : SUCCESS;
}

int hipModuleUnload(void *module) { (void)module; return SUCCESS; }

int hipModuleGetFunction(void **function, void *module, const char *name) {
    (void)module;
    *function = strdup(name);
    return SUCCESS;
}

#define MULTIPLY(TYPE)                                                     \
    for (unsigned row = 0; row < n; ++row)                                 \
        for (unsigned column = 0; column < n; ++column) {                  \
            TYPE sum = 0;                                                  \
            for (unsigned k = 0; k < n; ++k)                               \
                sum += ((TYPE *)a)[row * n + k] * ((TYPE *)b)[k * n + column]; \
            ((TYPE *)c)[row * n + column] = sum;                           \
        }

int hipModuleLaunchKernel(char *name, unsigned gx, unsigned gy, unsigned gz, unsigned bx,
                          unsigned by, unsigned bz, unsigned shared, void *stream,
                          void **arguments, void **extra) {
    void *a = *(void **)arguments[0], *b = *(void **)arguments[1], *c = *(void **)arguments[2];
    unsigned n = *(unsigned *)arguments[3];
    (void)gz; (void)bz; (void)shared; (void)stream; (void)extra;
    if (happens("never_runs")) return SUCCESS;
    if (!strcmp(name, "vector_add") && gx * bx >= n) {
        for (unsigned i = 0; i < n; ++i) ((float *)c)[i] = ((float *)a)[i] + ((float *)b)[i];
    } else if (!strcmp(name, "matmul_int32") && gx * bx >= n && gy * by >= n) {
        MULTIPLY(int)
    } else if (!strcmp(name, "matmul_fp32") && gx * bx >= n && gy * by >= n) {
        MULTIPLY(float)
        if (happens("kernel")) *(float *)c += 1;
    } else {
        return INVALID_VALUE;
    }
    return SUCCESS;
}

const char *hipGetErrorName(int code) {
    switch (code) {
    case SUCCESS: return "hipSuccess";
    case INVALID_VALUE: return "hipErrorInvalidValue";
    case OUT_OF_MEMORY: return "hipErrorOutOfMemory";
    case NO_DEVICE: return "hipErrorNoDevice";
    default: return 0;
    }
}

#endif
#ifdef WITH_RTC

static const char LOG[] = "probe.hip:2:1: error: no such target\n1 error generated.\n";

int hiprtcCreateProgram(void **program, const char *source, const char *name, int headers,
                        const char **texts, const char **names) {
    (void)name; (void)headers; (void)texts; (void)names;
    *program = (void *)source;
    return strstr(source, "vector_add") ? 0 : 4;
}

int hiprtcCompileProgram(void *program, int count, const char **options) {
    (void)program;
    if (happens("compile")) return 6;
    return count && strcmp(options[0], "--offload-arch=gfx942:sramecc+:xnack-") ? 5 : 0;
}

int hiprtcGetProgramLogSize(void *program, size_t *size) { (void)program; *size = sizeof LOG; return 0; }
int hiprtcGetProgramLog(void *program, char *log) { (void)program; memcpy(log, LOG, sizeof LOG); return 0; }
int hiprtcGetCodeSize(void *program, size_t *size) { (void)program; *size = 4; return 0; }
int hiprtcGetCode(void *program, char *code) { (void)program; memcpy(code, "STUB", 4); return 0; }
int hiprtcDestroyProgram(void **program) { *program = 0; return 0; }

const char *hiprtcGetErrorString(int code) {
    return code == 6 ? "HIPRTC_ERROR_COMPILATION" : code == 5 ? "HIPRTC_ERROR_INVALID_OPTION" : "HIPRTC_ERROR";
}

#endif
