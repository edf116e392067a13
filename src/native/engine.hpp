// A network, the kernel that computes it, and the threads that share the work.
#pragma once
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "kernel.hpp"
#include "network.hpp"

namespace feelstream {

// Sample numbers (devices, steps, size), steps ≥ 1. Those of a step that has fewer samples end in −1; a step that has
// none is not taken.
struct Batches {
    const std::int64_t* numbers;
    std::int64_t devices, steps, size;
};

// What every device does with its gradients: learning/contract.py has the formulas. 0: not used.
struct LocalSgd {
    std::vector<float> rates;  // one learning rate for each step
    float momentum = 0, weight_decay = 0, prox = 0, clip = 0;
    bool nesterov = false;
};

// (devices, parameters) each, or null: momentum's state, which training changes, and what is added to gradients.
struct DeviceState {
    float* velocity;
    const float* correction;
};

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

    // → updates (devices, parameters), losses (devices, steps, size), NaN for an absent sample.
    void train(const Samples& samples, const float* theta, const Batches& batches, const LocalSgd& sgd,
               const DeviceState& state, int threads, float* updates, float* losses, double* seconds) const;
    // The gradient at θ of the mean loss of each device's batch, of which there is one (steps = 1): (devices,
    // parameters).
    void gradients(const Samples& samples, const float* theta, const Batches& batches, int threads, float* result,
                   float* losses) const;
    // Loss and most probable class of each of `count` samples; `numbers` null: the first `count`.
    void predict(const Samples& samples, const std::int64_t* numbers, std::int64_t count, const float* theta,
                 int threads, float* losses, std::int32_t* classes, double* seconds) const;
    Result evaluate(const Samples& samples, std::int64_t count, const float* theta, int threads, double* seconds) const;
    // Multiply-adds a second of one core, from a loop that does nothing else.
    double peak(double seconds) const;
    // (stage, phase) pairs the profile has room for.
    std::int64_t profile_size() const { return std::int64_t(stages_.size()) * phases; }
    // A word for each stage: "convolution+pool+relu 20×4×4".
    std::vector<std::string> stage_names() const;

private:
    // finish(device, step, gradients, how many) once the shares of a step are computed; leave(device) after the last.
    template <class Weights, class Finish, class Leave>
    void for_each_step(const Samples& samples, const Batches& batches, int threads, float* losses, double* seconds,
                       Weights weights_of, Finish finish, Leave leave) const;

    std::vector<Stage> stages_;
    std::vector<std::size_t> guards_;
    Network network_{};
    const Kernel* kernel_;
};

}  // namespace feelstream
