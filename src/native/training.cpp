// Local training of a cohort, share by share.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>

#include "cohort.hpp"
#include "engine.hpp"
#include "kernel.hpp"
#include "network.hpp"
#include "threads.hpp"

namespace feelstream {
namespace {

constexpr float absent_loss = std::numeric_limits<float>::quiet_NaN();

// How many samples a step has: absent ones (−1) come last.
std::int64_t present(const std::int64_t* batch, std::int64_t size) {
    while (size > 0 && batch[size - 1] < 0) --size;
    return size;
}

std::int64_t blocks_of(std::int64_t size) { return (size + lanes - 1) / lanes; }

// Into how many shares a step with so many samples is cut.
int shares_of(std::int64_t size) { return int(std::min<std::int64_t>(blocks_of(size), max_shares)); }

}  // namespace

template <class Weights, class Finish, class Leave>
void Engine::for_each_step(const Samples& samples, const Batches& batches, int threads, float* losses, double* seconds,
                           Weights weights_of, Finish finish, Leave leave) const {
    const std::int64_t parameters = network_.parameters, devices = batches.devices, size = batches.size;
    const int shares = shares_of(size);
    const int workers = int(std::min<std::int64_t>(seconds ? 1 : threads, devices * shares));
    const int slots = int(std::min<std::int64_t>(workers, devices));
    const Memory gradients = allocate(std::size_t(slots) * shares * parameters, {});
    Cohort cohort(devices, batches.steps, shares, slots);
    on_threads(workers, [&] {
        const Memory memory = allocate(network_.workspace, guards_);
        Workspace space{memory.get(), seconds, now};
        const float* packed = nullptr;
        std::int64_t packed_step = -1;
        Share share;
        for (int slot = -1; cohort.take(slot, share);) {
            const std::int64_t at = (share.device * batches.steps + share.step) * size;
            const std::int64_t* batch = batches.numbers + at;
            // A short batch leaves the last shares without work, and its bits do not depend on the room it was given.
            const std::int64_t count = present(batch, size);
            const int parts = shares_of(count);
            float* first = gradients.get() + std::int64_t(share.slot) * shares * parameters;
            if (share.number == 0) std::fill(losses + at + count, losses + at + size, absent_loss);
            if (share.number < parts) {
                const auto start = [&](int part) {
                    return int(std::min<std::int64_t>(part * blocks_of(count) / parts * lanes, count));
                };
                const float* theta = weights_of(share.device);
                if (theta != packed || share.step != packed_step) {
                    kernel_->prepare_training(network_, theta, space);
                    packed = theta, packed_step = share.step;
                }
                kernel_->gradient(network_, theta, space, samples, batch, int(count), start(share.number),
                                  start(share.number + 1), losses + at, first + share.number * parameters);
            }
            if (!cohort.last_of_step(share)) continue;
            if (parts > 0) finish(share.device, share.step, first, parts);
            if (cohort.advance(share)) leave(share.device);
        }
    });
}

void Engine::train(const Samples& samples, const float* theta, const Batches& batches, const LocalSgd& sgd,
                   const DeviceState& state, int threads, float* updates, float* losses, double* seconds) const {
    const std::int64_t parameters = network_.parameters;
    for (std::int64_t device = 0; device < batches.devices; ++device)
        std::copy_n(theta, parameters, updates + device * parameters);
    const auto weights_of = [&](std::int64_t device) { return updates + device * parameters; };
    const auto descend = [&](std::int64_t device, std::int64_t step, float* gradients, int count) {
        const Step all{weights_of(device),
                       theta,
                       state.velocity ? state.velocity + device * parameters : nullptr,
                       state.correction ? state.correction + device * parameters : nullptr,
                       sgd.rates[step],
                       sgd.momentum,
                       sgd.weight_decay,
                       sgd.prox,
                       sgd.clip,
                       sgd.nesterov};
        kernel_->descend(all, gradients, count, parameters);
    };
    const auto subtract = [&](std::int64_t device) {
        float* own = weights_of(device);
        for (std::int64_t i = 0; i < parameters; ++i) own[i] -= theta[i];
    };
    for_each_step(samples, batches, threads, losses, seconds, weights_of, descend, subtract);
}

void Engine::gradients(const Samples& samples, const float* theta, const Batches& batches, int threads, float* result,
                       float* losses) const {
    const std::int64_t parameters = network_.parameters;
    std::fill_n(result, batches.devices * parameters, 0.0f);
    const auto add = [&](std::int64_t device, std::int64_t, float* gradients, int count) {
        kernel_->add(gradients, count, parameters, result + device * parameters);
    };
    const auto weights_of = [&](std::int64_t) { return theta; };
    for_each_step(samples, batches, threads, losses, nullptr, weights_of, add, [](std::int64_t) {});
}

}  // namespace feelstream
