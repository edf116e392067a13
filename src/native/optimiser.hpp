// What a step does with the gradient of its batch. learning/contract.py has the formulas (LocalSGD).
#pragma once
#include <math.h>

#include <cstdint>

#include "kernel.hpp"
#include "network.hpp"
#include "tiles.hpp"

namespace feelstream {
namespace {

template <int Count>
void descend_by(float* theta, const float* gradients, std::int64_t parameters, float lr) {
    for (std::int64_t i = 0; i < parameters; ++i) {
        float total = gradients[i];
        for (int g = 1; g < Count; ++g) total += gradients[g * parameters + i];
        theta[i] -= lr * total;
    }
}

template <int Count>
void add_by(const float* gradients, std::int64_t parameters, float* result) {
    for (std::int64_t i = 0; i < parameters; ++i) {
        float total = gradients[i];
        for (int g = 1; g < Count; ++g) total += gradients[g * parameters + i];
        result[i] = total;
    }
}

void add(const float* gradients, int count, std::int64_t parameters, float* result) {
    with_size<max_shares>(count, [&](auto fixed) { add_by<decltype(fixed)::value>(gradients, parameters, result); });
}

// Σ value². The square of a float is exact in double, and no such sum overflows; the order is the same on every
// instruction set.
double squared_norm(const float* value, std::int64_t count) {
    constexpr int chains = 16;
    double part[chains] = {};
    std::int64_t i = 0;
    for (; i + chains <= count; i += chains)
        for (int k = 0; k < chains; ++k) part[k] += double(value[i + k]) * double(value[i + k]);
    for (int k = 0; i < count; ++i, ++k) part[k] += double(value[i]) * double(value[i]);
    double total = 0;
    for (int k = 0; k < chains; ++k) total += part[k];
    return total;
}

// No longer than `most`: as torch.nn.utils.clip_grad_norm_ scales.
void clip(float* __restrict gradient, std::int64_t parameters, float most) {
    const double factor = double(most) / (sqrt(squared_norm(gradient, parameters)) + 1e-6);
    if (factor >= 1) return;
    for (std::int64_t i = 0; i < parameters; ++i) gradient[i] *= float(factor);
}

// A step with any of momentum, weight decay, clipping, a proximal term or a correction. Each is a pass of its own: all
// of them together are short beside the gradient.
void descend_with(const Step& step, float* __restrict gradient, std::int64_t parameters) {
    float* __restrict theta = step.theta;
    if (const float* __restrict correction = step.correction)
        for (std::int64_t i = 0; i < parameters; ++i) gradient[i] += correction[i];
    if (const float* __restrict start = step.prox != 0 ? step.start : nullptr)
        for (std::int64_t i = 0; i < parameters; ++i) gradient[i] += step.prox * (theta[i] - start[i]);
    if (step.clip > 0) clip(gradient, parameters, step.clip);
    if (step.weight_decay != 0)
        for (std::int64_t i = 0; i < parameters; ++i) gradient[i] += step.weight_decay * theta[i];
    float* __restrict velocity = step.velocity;
    if (!velocity)
        for (std::int64_t i = 0; i < parameters; ++i) theta[i] -= step.lr * gradient[i];
    else
        for (std::int64_t i = 0; i < parameters; ++i) {
            velocity[i] = step.momentum * velocity[i] + gradient[i];
            theta[i] -= step.lr * (step.nesterov ? gradient[i] + step.momentum * velocity[i] : velocity[i]);
        }
}

void descend(const Step& step, float* gradients, int count, std::int64_t parameters) {
    const bool terms = step.weight_decay != 0 || step.prox != 0 || step.clip > 0;
    if (!step.velocity && !step.correction && !terms) {
        with_size<max_shares>(
            count, [&](auto fixed) { descend_by<decltype(fixed)::value>(step.theta, gradients, parameters, step.lr); });
        return;
    }
    add(gradients, count, parameters, gradients);
    descend_with(step, gradients, parameters);
}

}  // namespace
}  // namespace feelstream
