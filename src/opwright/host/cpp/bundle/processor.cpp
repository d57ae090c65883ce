#include "bundle/processor.h"

#include <sys/utsname.h>

#include <array>
#include <cstdint>
#include <string_view>

#ifdef __x86_64__
#include <cpuid.h>
#else
#include <fstream>
#include <sstream>
#endif

#include "opwright/host/error.h"

namespace opwright::host {
namespace {

#ifdef __x86_64__

enum Register { eax, ebx, ecx, edx };

// Registers that the operating system must save, in addition to processor support: bits of XCR0.
enum State : uint64_t { none = 0, avx = 0x6, avx512 = 0xe6, tiles = 0x60000 };

struct Feature {
    std::string_view name;
    uint32_t leaf, subleaf;
    Register where;
    int bit;
    State state;
};

// Intel's Software Developer's Manual, volume 2, "CPUID"; AMD's Architecture Programmer's Manual, volume 3, appendix E.
constexpr std::array features{
    Feature{"pni", 1, 0, ecx, 0, none},
    Feature{"pclmulqdq", 1, 0, ecx, 1, none},
    Feature{"ssse3", 1, 0, ecx, 9, none},
    Feature{"fma", 1, 0, ecx, 12, avx},
    Feature{"cx16", 1, 0, ecx, 13, none},
    Feature{"sse4_1", 1, 0, ecx, 19, none},
    Feature{"sse4_2", 1, 0, ecx, 20, none},
    Feature{"movbe", 1, 0, ecx, 22, none},
    Feature{"popcnt", 1, 0, ecx, 23, none},
    Feature{"aes", 1, 0, ecx, 25, none},
    Feature{"xsave", 1, 0, ecx, 26, none},
    Feature{"avx", 1, 0, ecx, 28, avx},
    Feature{"f16c", 1, 0, ecx, 29, avx},
    Feature{"rdrand", 1, 0, ecx, 30, none},
    Feature{"fsgsbase", 7, 0, ebx, 0, none},
    Feature{"sgx", 7, 0, ebx, 2, none},
    Feature{"bmi1", 7, 0, ebx, 3, none},
    Feature{"hle", 7, 0, ebx, 4, none},
    Feature{"avx2", 7, 0, ebx, 5, avx},
    Feature{"bmi2", 7, 0, ebx, 8, none},
    Feature{"rtm", 7, 0, ebx, 11, none},
    Feature{"avx512f", 7, 0, ebx, 16, avx512},
    Feature{"avx512dq", 7, 0, ebx, 17, avx512},
    Feature{"rdseed", 7, 0, ebx, 18, none},
    Feature{"adx", 7, 0, ebx, 19, none},
    Feature{"avx512ifma", 7, 0, ebx, 21, avx512},
    Feature{"clflushopt", 7, 0, ebx, 23, none},
    Feature{"clwb", 7, 0, ebx, 24, none},
    Feature{"avx512cd", 7, 0, ebx, 28, avx512},
    Feature{"sha_ni", 7, 0, ebx, 29, none},
    Feature{"avx512bw", 7, 0, ebx, 30, avx512},
    Feature{"avx512vl", 7, 0, ebx, 31, avx512},
    Feature{"avx512vbmi", 7, 0, ecx, 1, avx512},
    Feature{"pku", 7, 0, ecx, 3, none},
    Feature{"waitpkg", 7, 0, ecx, 5, none},
    Feature{"avx512_vbmi2", 7, 0, ecx, 6, avx512},
    Feature{"gfni", 7, 0, ecx, 8, none},
    Feature{"vaes", 7, 0, ecx, 9, avx},
    Feature{"vpclmulqdq", 7, 0, ecx, 10, avx},
    Feature{"avx512_vnni", 7, 0, ecx, 11, avx512},
    Feature{"avx512_bitalg", 7, 0, ecx, 12, avx512},
    Feature{"avx512_vpopcntdq", 7, 0, ecx, 14, avx512},
    Feature{"rdpid", 7, 0, ecx, 22, none},
    Feature{"cldemote", 7, 0, ecx, 25, none},
    Feature{"movdiri", 7, 0, ecx, 27, none},
    Feature{"movdir64b", 7, 0, ecx, 28, none},
    Feature{"enqcmd", 7, 0, ecx, 29, none},
    Feature{"avx512_vp2intersect", 7, 0, edx, 8, avx512},
    Feature{"serialize", 7, 0, edx, 14, none},
    Feature{"tsxldtrk", 7, 0, edx, 16, none},
    Feature{"amx_bf16", 7, 0, edx, 22, tiles},
    Feature{"avx512_fp16", 7, 0, edx, 23, avx512},
    Feature{"amx_tile", 7, 0, edx, 24, tiles},
    Feature{"amx_int8", 7, 0, edx, 25, tiles},
    Feature{"avx_vnni", 7, 1, eax, 4, avx},
    Feature{"avx512_bf16", 7, 1, eax, 5, avx512},
    Feature{"amx_fp16", 7, 1, eax, 21, tiles},
    Feature{"avx_ifma", 7, 1, eax, 23, avx},
    Feature{"xsaveopt", 0xd, 1, eax, 0, none},
    Feature{"xsavec", 0xd, 1, eax, 1, none},
    Feature{"xsaves", 0xd, 1, eax, 3, none},
    Feature{"lahf_lm", 0x80000001, 0, ecx, 0, none},
    Feature{"abm", 0x80000001, 0, ecx, 5, none},
    Feature{"sse4a", 0x80000001, 0, ecx, 6, none},
    Feature{"3dnowprefetch", 0x80000001, 0, ecx, 8, none},
    Feature{"xop", 0x80000001, 0, ecx, 11, avx},
    Feature{"fma4", 0x80000001, 0, ecx, 16, avx},
    Feature{"tbm", 0x80000001, 0, ecx, 21, none},
    Feature{"mwaitx", 0x80000001, 0, ecx, 29, none},
    Feature{"clzero", 0x80000008, 0, ebx, 0, none},
    Feature{"wbnoinvd", 0x80000008, 0, ebx, 9, none},
};

// The registers that the system saves; 0 if this cannot be queried.
uint64_t saved_state() {
    std::array<uint32_t, 4> found{};
    constexpr uint32_t can_be_asked = 1U << 27;  // OSXSAVE
    if (!__get_cpuid(1, &found[eax], &found[ebx], &found[ecx], &found[edx]) || !(found[ecx] & can_be_asked)) return 0;
    uint32_t low = 0, high = 0;
    __asm__("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
    return uint64_t{high} << 32 | low;
}

#endif

std::string architecture() {
    utsname system = {};
    return uname(&system) == 0 ? system.machine : "unknown";
}

}  // namespace

#ifdef __x86_64__

bool has_feature(const std::string& name) {
    for (const Feature& feature : features) {
        if (feature.name != name) continue;
        std::array<uint32_t, 4> found{};
        return __get_cpuid_count(feature.leaf, feature.subleaf, &found[eax], &found[ebx], &found[ecx], &found[edx]) &&
               (found[feature.where] >> feature.bit & 1) && (saved_state() & feature.state) == feature.state;
    }
    return false;
}

#else

bool has_feature(const std::string& name) {
    std::ifstream cpuinfo("/proc/cpuinfo");
    for (std::string line; std::getline(cpuinfo, line);) {
        if (!line.starts_with("Features")) continue;
        std::istringstream words(line);
        for (std::string word; words >> word;)
            if (word == name) return true;
        return false;
    }
    return false;
}

#endif

void check_processor(const Manifest& manifest) {
    if (const std::string own = architecture(); own != manifest.architecture)
        throw Error(Code::cpu_unsupported, "the bundle was made for " + manifest.architecture +
                                               ", but this machine is " + own +
                                               ": ship the model on a machine of this architecture");
    std::string missing;
    for (const std::string& name : manifest.cpu_features)
        if (!has_feature(name)) missing += (missing.empty() ? "" : ", ") + name;
    if (!missing.empty())
        throw Error(Code::cpu_unsupported, "the bundle requires a processor with " + missing +
                                               ", which this one lacks: ship the model with --cpu x86-64-v3, or the "
                                               "level that this processor supports");
}

}  // namespace opwright::host
