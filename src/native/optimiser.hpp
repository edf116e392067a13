// What a step does with the gradient of its batch.
#pragma once
#include <cstdint>

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

void descend(float* theta, const float* gradients, int count, std::int64_t parameters, float lr) {
    with_size<max_shares>(count,
                          [&](auto fixed) { descend_by<decltype(fixed)::value>(theta, gradients, parameters, lr); });
}

}  // namespace
}  // namespace feelstream
