// What each instruction set offers. kernel.cpp is compiled once for each of them with other compiler flags,
// so it and what it includes must define nothing with external linkage but its table: an inline function of
// the standard library compiled for AVX-512 could otherwise be the one the linker keeps for everybody.
#pragma once
#include <cstdint>

#include "network.hpp"

namespace feelstream {

enum Phase { forward_phase, weight_phase, input_phase, phases };

struct Workspace {
    float* memory;    // Network::workspace floats, aligned to 64 bytes
    double* seconds;  // time by (stage, phase), or null when nobody wants to know
    double (*now)();
};

// One step of one device. Null or 0 where a term is not used.
struct Step {
    float* theta;             // the device's weights, which the step changes
    const float* start;       // those that it began with, for prox
    float* velocity;          // momentum's state, which the step changes
    const float* correction;  // added to the gradient
    float lr, momentum, weight_decay, prox, clip;
    bool nesterov;
};

struct Kernel {
    const char* name;
    // Bring the weights into the order in which predict reads them, or gradient.
    void (*prepare)(const Network&, const float* theta, Workspace&);
    void (*prepare_training)(const Network&, const float* theta, Workspace&);
    // Loss and most probable class of `count` ≤ max_together · lanes samples.
    void (*predict)(const Network&, const float* theta, Workspace&, const Samples&, const std::int64_t* numbers,
                    int count, float* losses, std::int32_t* classes);
    // The part of the gradient of a batch's mean loss that samples first .. last − 1 contribute, and their losses.
    void (*gradient)(const Network&, const float* theta, Workspace&, const Samples&, const std::int64_t* batch,
                     int size, int first, int last, float* losses, float* gradient);
    // Σ of `count` ≤ max_shares gradients, which lie one after the other; `result` may be the first of them.
    void (*add)(const float* gradients, int count, std::int64_t parameters, float* result);
    // A step by that sum; the gradients are used up.
    void (*descend)(const Step&, float* gradients, int count, std::int64_t parameters);
    // Runs `rounds` rounds of independent multiply-adds in registers; gives how many multiply-adds that was.
    double (*multiply_adds)(std::int64_t rounds);
};

extern const Kernel kernel_baseline;
#ifdef FEELSTREAM_X86
extern const Kernel kernel_avx2;
extern const Kernel kernel_avx512;
#endif

}  // namespace feelstream
