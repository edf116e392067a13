#include "engine.hpp"

#include <algorithm>
#include <stdexcept>
#include <string>
#include <vector>

#include "build.hpp"
#include "kernel.hpp"
#include "network.hpp"
#include "threads.hpp"

namespace feelstream {
namespace {

std::vector<const Kernel*> kernels() {
    std::vector<const Kernel*> found{&kernel_baseline};
#ifdef FEELSTREAM_X86
    __builtin_cpu_init();
    const bool avx2 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
    if (avx2) found.push_back(&kernel_avx2);
    if (avx2 && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512vl") &&
        __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512dq"))
        found.push_back(&kernel_avx512);
#endif
    return found;
}

}  // namespace

std::vector<std::string> available_kernels() {
    std::vector<std::string> names;
    for (const Kernel* kernel : kernels()) names.emplace_back(kernel->name);
    return names;
}

Engine::Engine(int channels, int rows, int columns, const std::vector<Layer>& layers, const std::string& isa)
    : stages_(fuse(channels, rows, columns, layers)), network_(lay_out(stages_, guards_)), kernel_(nullptr) {
    for (const Kernel* kernel : kernels())
        if (kernel->name == isa) kernel_ = kernel;
    if (!kernel_) throw std::invalid_argument("no kernel for instruction set '" + isa + "'");
}

double Engine::peak(double seconds) const {
    double best = 0;
    for (const double end = now() + seconds; now() < end;) {
        const double start = now();
        const double done = kernel_->multiply_adds(50000);
        best = std::max(best, done / (now() - start));
    }
    return best;
}

std::vector<std::string> Engine::stage_names() const {
    std::vector<std::string> names;
    for (const Stage& s : stages_) {
        std::string name = name_of(s.kind);
        if (s.pool && s.kind != Kind::pool) name += "+pool";
        if (s.relu && s.kind != Kind::relu) name += "+relu";
        names.push_back(name + " " + std::to_string(s.out_channels) + "×" + std::to_string(s.out_rows) + "×" +
                        std::to_string(s.out_columns));
    }
    return names;
}

}  // namespace feelstream
