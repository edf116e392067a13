// Fully connected layers. Activations are (feature, lane), and in evaluation (block, feature, lane); weights stay in
// θ's own order (unit, feature).
#pragma once
#include <cstddef>

#include "network.hpp"
#include "product.hpp"
#include "tiles.hpp"
#include "turn.hpp"
#include "vector.hpp"

namespace feelstream {
namespace {

// Units × vectors of accumulators; where one vector has all lanes there must be more units instead, or blocks.
constexpr int dense_vectors = position_tile * width > lanes ? lanes / width : position_tile;
constexpr int dense_units = dense_vectors == 1 ? 8 : channel_tile;
constexpr bool blocks_together = dense_vectors * width == lanes && dense_vectors < position_tile;
// Features of which the inputs of all blocks that are multiplied together stay in the first cache.
constexpr std::ptrdiff_t dense_features = 112;

// f(first, Size<how many>, lane) for tiles of `count` rows and vectors of the lanes.
template <class F>
inline void dense_tiles(int count, F&& f) {
    tiles<dense_units>(count, [&](int first, auto size) {
        for (int v = 0; v < lanes; v += dense_vectors * width) f(first, size, v);
    });
}

template <int U>
FEELSTREAM_NOINLINE void dense_sums(std::ptrdiff_t count, Factors factors, const float* in, const float* bias,
                                    bool with_relu, float* output) {
    Vec sums[U][dense_vectors];
    for (int i = 0; i < U; ++i)
        for (int p = 0; p < dense_vectors; ++p) sums[i][p] = bias ? splat(bias[i]) : Vec{};
    add_products(count, factors, in, lanes, width, sums);
    for (int i = 0; i < U; ++i)
        for (int p = 0; p < dense_vectors; ++p)
            store(output + i * lanes + p * width, with_relu ? relu(sums[i][p]) : sums[i][p]);
}

// `count` features of U units and B blocks, which are in_next and out_next apart; the sums go on from `output` unless a
// bias is given.
template <int U, int B>
FEELSTREAM_NOINLINE void dense_part(std::ptrdiff_t count, Factors factors, const float* in, std::ptrdiff_t in_next,
                                    const float* bias, bool with_relu, float* output, std::ptrdiff_t out_next) {
    Vec sums[U][B];
    for (int i = 0; i < U; ++i)
        for (int b = 0; b < B; ++b) sums[i][b] = bias ? splat(bias[i]) : load(output + i * lanes + b * out_next);
    add_products(count, factors, in, lanes, in_next, sums);
    for (int i = 0; i < U; ++i)
        for (int b = 0; b < B; ++b) store(output + i * lanes + b * out_next, with_relu ? relu(sums[i][b]) : sums[i][b]);
}

// Several blocks. The sums run over features in the same order however many there are, so the bits are the same.
void dense_forward(const Stage& s, const float* in, int blocks, const float* weight, const float* bias, float* output) {
    const std::ptrdiff_t features = s.inputs(), in_next = features * lanes, out_next = s.outputs() * lanes;
    if constexpr (blocks_together)
        if (blocks > 1) {
            with_size<max_together>(blocks, [&](auto together) {
                for (std::ptrdiff_t begin = 0; begin < features; begin += dense_features) {
                    const std::ptrdiff_t rest = features - begin, count = rest < dense_features ? rest : dense_features;
                    tiles<channel_tile>(s.out_channels, [&](int first, auto size) {
                        dense_part<decltype(size)::value, decltype(together)::value>(
                            count, {weight + first * features + begin, features, 1}, in + begin * lanes, in_next,
                            begin ? nullptr : bias + first, s.relu && count == rest, output + first * lanes, out_next);
                    });
                }
            });
            return;
        }
    dense_tiles(s.out_channels, [&](int first, auto size, int v) {
        for (int b = 0; b < blocks; ++b)
            dense_sums<decltype(size)::value>(features, {weight + first * features, features, 1}, in + b * in_next + v,
                                              bias + first, s.relu, output + b * out_next + first * lanes + v);
    });
}

void dense_input_gradient(const Stage& s, const float* delta, const float* weight, float* result) {
    const std::ptrdiff_t features = s.inputs();
    dense_tiles(int(features), [&](int first, auto size, int v) {
        dense_sums<decltype(size)::value>(s.out_channels, {weight + first, 1, features}, delta + v, nullptr, false,
                                          result + std::ptrdiff_t(first) * lanes + v);
    });
}

// With the input turned to (lane, feature) the sum over samples runs along whole vectors of features, so no
// lanes need adding; lanes beyond `samples` are padding and are left out.
void dense_weight_gradient(const Stage& s, const float* in, const float* delta, int samples, float* turned,
                           float* gradient) {
    const std::ptrdiff_t features = s.inputs(), apart = s.padded_inputs();
    turn(in, int(features), lanes, apart, turned);
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
                        const Vec value = load(turned + lane * apart + start + p * width);
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
