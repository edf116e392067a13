#include "engine.hpp"

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <ctime>
#include <exception>
#include <memory>
#include <mutex>
#include <new>
#include <stdexcept>
#include <string>
#include <system_error>
#include <thread>
#include <vector>

#include "build.hpp"
#include "cohort.hpp"
#include "kernel.hpp"
#include "network.hpp"

#ifdef __SANITIZE_ADDRESS__
#include <sanitizer/asan_interface.h>
#endif

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

// Seconds this thread has computed: what other programs take of the core does not count.
double now() {
    timespec time;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
    return double(time.tv_sec) + 1e-9 * double(time.tv_nsec);
}

constexpr std::align_val_t cache_line{64};

struct Free {
    void operator()(float* memory) const { ::operator delete[](memory, cache_line); }
};
using Memory = std::unique_ptr<float[], Free>;

Memory allocate(std::size_t floats, [[maybe_unused]] const std::vector<std::size_t>& guards) {
    Memory memory(static_cast<float*>(::operator new[](floats * sizeof(float), cache_line)));
    std::fill_n(memory.get(), floats, 0.0f);
#ifdef __SANITIZE_ADDRESS__
    for (const std::size_t guard : guards) ASAN_POISON_MEMORY_REGION(memory.get() + guard, lanes * sizeof(float));
#endif
    return memory;
}

// Runs work() on up to `threads` threads, this one among them; the first exception is thrown on.
template <class F>
void on_threads(int threads, F work) {
    std::exception_ptr failure;
    std::mutex guard;
    const auto guarded = [&] {
        try {
            work();
        } catch (...) {
            const std::lock_guard lock(guard);
            if (!failure) failure = std::current_exception();
        }
    };
    std::vector<std::thread> others;
    others.reserve(std::max(threads - 1, 0));
    try {
        for (int i = 1; i < threads; ++i) others.emplace_back(guarded);
    } catch (const std::system_error&) {
        // Fewer threads than asked for: the work is shared by those there are.
    }
    guarded();
    for (auto& thread : others) thread.join();
    if (failure) std::rethrow_exception(failure);
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

void Engine::train(const Samples& samples, const float* theta, const std::int64_t* batches, std::int64_t devices,
                   std::int64_t steps, std::int64_t size, float lr, int threads, float* updates, float* losses,
                   double* seconds) const {
    if (steps == 0) {
        std::fill_n(updates, devices * network_.parameters, 0.0f);
        return;
    }
    const std::int64_t parameters = network_.parameters, blocks = (size + lanes - 1) / lanes;
    const int shares = int(std::min<std::int64_t>(blocks, max_shares));
    const int workers = int(std::min<std::int64_t>(seconds ? 1 : threads, devices * shares));
    const int slots = int(std::min<std::int64_t>(workers, devices));
    const auto start = [&](int share) { return int(std::min<std::int64_t>(share * blocks / shares * lanes, size)); };
    const Memory gradients = allocate(std::size_t(slots) * shares * parameters, {});
    for (std::int64_t device = 0; device < devices; ++device)
        std::copy_n(theta, parameters, updates + device * parameters);
    Cohort cohort(devices, steps, shares, slots);
    on_threads(workers, [&] {
        const Memory memory = allocate(network_.workspace, guards_);
        Workspace space{memory.get(), seconds, now};
        std::int64_t packed_device = -1, packed_step = -1;
        Share share;
        for (int slot = -1; cohort.take(slot, share);) {
            float* own = updates + share.device * parameters;
            float* first = gradients.get() + std::int64_t(share.slot) * shares * parameters;
            const std::int64_t at = (share.device * steps + share.step) * size;
            if (share.device != packed_device || share.step != packed_step) {
                kernel_->prepare_training(network_, own, space);
                packed_device = share.device, packed_step = share.step;
            }
            kernel_->gradient(network_, own, space, samples, batches + at, int(size), start(share.number),
                              start(share.number + 1), losses + at, first + share.number * parameters);
            if (!cohort.last_of_step(share)) continue;
            kernel_->descend(own, first, shares, parameters, lr);
            if (cohort.advance(share))
                for (std::int64_t i = 0; i < parameters; ++i) own[i] -= theta[i];
        }
    });
}

Result Engine::evaluate(const Samples& samples, std::int64_t count, const float* theta, int threads,
                        double* seconds) const {
    const std::int64_t blocks = (count + lanes - 1) / lanes;
    std::vector<double> losses(blocks);
    std::vector<int> right(blocks);
    std::atomic<std::int64_t> next{0};
    on_threads(int(std::min<std::int64_t>(seconds ? 1 : threads, blocks)), [&] {
        const Memory memory = allocate(network_.workspace, guards_);
        Workspace space{memory.get(), seconds, now};
        kernel_->prepare(network_, theta, space);
        for (std::int64_t block; (block = next++) < blocks;) {
            const std::int64_t first = block * lanes;
            kernel_->evaluate(network_, theta, space, samples, first, int(std::min<std::int64_t>(lanes, count - first)),
                              losses[block], right[block]);
        }
    });
    // In the order of the blocks, whichever thread had them: the sum has the same bits for any `threads`.
    Result result{0, 0};
    for (std::int64_t block = 0; block < blocks; ++block)
        result.loss_sum += losses[block], result.right += right[block];
    return result;
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
