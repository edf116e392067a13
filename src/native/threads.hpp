// Threads, their memory and their clock.
#pragma once
#include <algorithm>
#include <cstddef>
#include <ctime>
#include <exception>
#include <memory>
#include <mutex>
#include <new>
#include <system_error>
#include <thread>
#include <vector>

#include "network.hpp"

#ifdef __SANITIZE_ADDRESS__
#include <sanitizer/asan_interface.h>
#endif

namespace feelstream {

// Seconds this thread has computed: what other programs take of the core does not count.
inline double now() {
    timespec time;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
    return double(time.tv_sec) + 1e-9 * double(time.tv_nsec);
}

constexpr std::align_val_t cache_line{64};

struct Free {
    void operator()(float* memory) const { ::operator delete[](memory, cache_line); }
};
using Memory = std::unique_ptr<float[], Free>;

inline Memory allocate(std::size_t floats, [[maybe_unused]] const std::vector<std::size_t>& guards) {
    Memory memory(static_cast<float*>(::operator new[](floats * sizeof(float), cache_line)));
    std::fill_n(memory.get(), floats, 0.0f);
#ifdef __SANITIZE_ADDRESS__
    for (const std::size_t guard : guards) ASAN_POISON_MEMORY_REGION(memory.get() + guard, lanes * sizeof(float));
#endif
    return memory;
}

// Runs work() on up to `threads` threads, this one among them; the first exception is thrown again here.
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

}  // namespace feelstream
