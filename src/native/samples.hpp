// From the data set to a block of the first layer's input, and from logits to losses.
#pragma once
#include <math.h>
#include <string.h>

#include <cstdint>

#include "network.hpp"
#include "vector.hpp"

namespace feelstream {
namespace {

typedef std::uint8_t Bytes __attribute__((vector_size(lanes)));

// Float features of 16 samples → (value, lane).
inline void gather_values(const Samples& samples, int pixels, const std::int64_t* numbers, int count, float* input) {
    const float* from[lanes];
    for (int lane = 0; lane < lanes; ++lane) from[lane] = samples.values + numbers[lane < count ? lane : 0] * pixels;
    for (int p = 0; p < pixels; ++p)
        for (int lane = 0; lane < lanes; ++lane)
            input[p * lanes + lane] = from[lane][p] * samples.scale + samples.shift;
}

// Images of 16 samples → (pixel, lane), normalised. Four rounds of interleaving turn 16 × 16 bytes.
inline void gather(const Samples& samples, int pixels, const std::int64_t* numbers, int count, float* input) {
    if (samples.values) return gather_values(samples, pixels, numbers, count, input);
    const std::uint8_t* image[lanes];
    for (int lane = 0; lane < lanes; ++lane)  // padding repeats the first sample: finite, and weighs nothing
        image[lane] = samples.pixels + numbers[lane < count ? lane : 0] * pixels;
    int p = 0;
    for (; p + lanes <= pixels; p += lanes) {
        Bytes from[lanes], to[lanes];
        for (int lane = 0; lane < lanes; ++lane) memcpy(&from[lane], image[lane] + p, lanes);
        for (int round = 0; round < 4; ++round) {
            for (int i = 0; i < lanes / 2; ++i) {
                to[2 * i] = FEELSTREAM_SHUFFLE(Bytes, from[i], from[i + lanes / 2], FEELSTREAM_LOW_16);
                to[2 * i + 1] = FEELSTREAM_SHUFFLE(Bytes, from[i], from[i + lanes / 2], FEELSTREAM_HIGH_16);
            }
            for (int i = 0; i < lanes; ++i) from[i] = to[i];
        }
        std::uint8_t turned[lanes * lanes];
        memcpy(turned, from, sizeof turned);
        for (int i = 0; i < lanes * lanes; ++i) input[p * lanes + i] = float(turned[i]) * samples.scale + samples.shift;
    }
    for (; p < pixels; ++p)
        for (int lane = 0; lane < lanes; ++lane)
            input[p * lanes + lane] = float(image[lane][p]) * samples.scale + samples.shift;
}

// losses[lane] = log Σ exp(z) − z[label]; predicted[lane] is the first largest class.
// With `delta` given: softmax(z) − onehot(label), times `weight`, and exactly 0 in padding.
inline void cross_entropy(const float* logits, int classes, const std::int32_t* labels, int count, float weight,
                          float* losses, int* predicted, float* delta) {
    float largest[lanes], total[lanes] = {};
    for (int lane = 0; lane < lanes; ++lane) largest[lane] = logits[lane], predicted[lane] = 0;
    for (int c = 1; c < classes; ++c)
        for (int lane = 0; lane < lanes; ++lane)
            if (logits[c * lanes + lane] > largest[lane]) largest[lane] = logits[c * lanes + lane], predicted[lane] = c;
    for (int c = 0; c < classes; ++c)
        for (int lane = 0; lane < count; ++lane) {
            const float e = expf(logits[c * lanes + lane] - largest[lane]);
            total[lane] += e;
            if (delta) delta[c * lanes + lane] = e;
        }
    for (int lane = 0; lane < count; ++lane)
        losses[lane] = logf(total[lane]) - (logits[labels[lane] * lanes + lane] - largest[lane]);
    if (!delta) return;
    for (int c = 0; c < classes; ++c)
        for (int lane = 0; lane < lanes; ++lane)
            delta[c * lanes + lane] =
                lane < count ? (delta[c * lanes + lane] / total[lane] - float(c == labels[lane])) * weight : 0.0f;
}

}  // namespace
}  // namespace feelstream
