// Fully connected layers. Activations are (feature, lane); weights stay in θ's own order (unit, feature).
#pragma once
#include <cstddef>

#include "network.hpp"
#include "tiles.hpp"
#include "vector.hpp"

namespace feelstream {
namespace {

constexpr int unit_tile = 8;

void dense_forward(const Stage& s, const float* in, const float* weight, const float* bias, float* output) {
    const std::ptrdiff_t features = s.inputs();
    tiles<unit_tile>(s.out_channels, [&](int first, auto count) {
        constexpr int U = decltype(count)::value;
        for (int v = 0; v < lanes; v += width) {
            Vec sums[U];
            for (int i = 0; i < U; ++i) sums[i] = splat(bias[first + i]);
            const float* w = weight + first * features;
            for (std::ptrdiff_t f = 0; f < features; ++f, ++w) {
                const Vec value = load(in + f * lanes + v);
                for (int i = 0; i < U; ++i) sums[i] += value * w[i * features];
            }
            for (int i = 0; i < U; ++i) store(output + (first + i) * lanes + v, s.relu ? relu(sums[i]) : sums[i]);
        }
    });
}

void dense_input_gradient(const Stage& s, const float* delta, const float* weight, float* result) {
    const std::ptrdiff_t features = s.inputs();
    tiles<unit_tile>(int(features), [&](int first, auto count) {
        constexpr int F = decltype(count)::value;
        for (int v = 0; v < lanes; v += width) {
            Vec sums[F] = {};
            for (int u = 0; u < s.out_channels; ++u) {
                const Vec value = load(delta + u * lanes + v);
                for (int i = 0; i < F; ++i) sums[i] += value * weight[u * features + first + i];
            }
            for (int i = 0; i < F; ++i) store(result + (std::size_t(first) + i) * lanes + v, sums[i]);
        }
    });
}

// With the input turned to (lane, feature) the sum over samples runs along whole vectors of features, so no
// lanes need adding; lanes beyond `samples` are padding and are left out.
void dense_weight_gradient(const Stage& s, const float* in, const float* delta, int samples, float* turned,
                           float* gradient) {
    const std::ptrdiff_t features = s.inputs();
    for (std::ptrdiff_t f = 0; f < features; ++f)
        for (int lane = 0; lane < lanes; ++lane) turned[lane * features + f] = in[f * lanes + lane];
    const int vectors = int(features / width);
    tiles<channel_tile>(s.out_channels, [&](int first, auto units) {
        constexpr int U = decltype(units)::value;
        const float* d = delta + first * lanes;
        float* to = gradient + first * features;
        if (vectors > 0)
            tiles<position_tile>(vectors, [&](int vector, auto count) {
                constexpr int P = decltype(count)::value;
                const std::ptrdiff_t start = std::ptrdiff_t(vector) * width;
                Vec sums[U][P];
                for (int i = 0; i < U; ++i)
                    for (int p = 0; p < P; ++p) sums[i][p] = load(to + i * features + start + p * width);
                for (int lane = 0; lane < samples; ++lane)
                    for (int p = 0; p < P; ++p) {
                        const Vec value = load(turned + lane * features + start + p * width);
                        for (int i = 0; i < U; ++i) sums[i][p] += value * d[i * lanes + lane];
                    }
                for (int i = 0; i < U; ++i)
                    for (int p = 0; p < P; ++p) store(to + i * features + start + p * width, sums[i][p]);
            });
        for (std::ptrdiff_t f = std::ptrdiff_t(vectors) * width; f < features; ++f)
            for (int i = 0; i < U; ++i)
                for (int lane = 0; lane < samples; ++lane)
                    to[i * features + f] += d[i * lanes + lane] * in[f * lanes + lane];
    });
}

// A bias's gradient is the sum of its channel's delta over positions and lanes.
void bias_gradient(const float* delta, int channels, std::size_t plane, float* gradient) {
    for (int c = 0; c < channels; ++c) {
        Vec total = {};
        for (std::size_t i = 0; i < plane * lanes; i += width) total += load(delta + c * plane * lanes + i);
        gradient[c] += sum(total);
    }
}

// The same before unpooling: what ReLU stopped does not count.
void pooled_bias_gradient(const Stage& s, const float* delta, const float* route, float* gradient) {
    const std::size_t plane = std::size_t(s.out_rows) * s.out_columns * lanes;
    for (int c = 0; c < s.out_channels; ++c) {
        Vec total = {};
        for (std::size_t i = c * plane; i < (c + 1) * plane; i += width)
            total += load_mask(route + i) < 0 ? Vec{} : load(delta + i);
        gradient[c] += sum(total);
    }
}

}  // namespace
}  // namespace feelstream
