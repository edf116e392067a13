// A network, the kernel that computes it, and the threads that share the work.
#pragma once
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "kernel.hpp"
#include "network.hpp"

namespace feelstream {

struct Result {
    double loss_sum;
    std::int64_t right;
};

// Instruction sets this build has and this machine can run, slowest first.
std::vector<std::string> available_kernels();

class Engine {
public:
    Engine(int channels, int rows, int columns, const std::vector<Layer>& layers, const std::string& isa);
    Engine(const Engine&) = delete;
    Engine& operator=(const Engine&) = delete;

    const Network& network() const { return network_; }
    const Kernel& kernel() const { return *kernel_; }

    // batches (devices, steps, size) → updates (devices, parameters), losses (devices, steps, size).
    void train(const Samples& samples, const float* theta, const std::int64_t* batches, std::int64_t devices,
               std::int64_t steps, std::int64_t size, float lr, int threads, float* updates, float* losses,
               double* seconds) const;
    Result evaluate(const Samples& samples, std::int64_t count, const float* theta, int threads, double* seconds) const;
    // Multiply-adds a second of one core, from a loop that does nothing else.
    double peak(double seconds) const;
    // (stage, phase) pairs the profile has room for.
    std::int64_t profile_size() const { return std::int64_t(stages_.size()) * phases; }
    // A word for each stage: "convolution+pool+relu 20×4×4".
    std::vector<std::string> stage_names() const;

private:
    std::vector<Stage> stages_;
    std::vector<std::size_t> guards_;
    Network network_{};
    const Kernel* kernel_;
};

}  // namespace feelstream
