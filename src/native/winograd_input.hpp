// The input's gradient by the same points: winograd.hpp read backwards. Forward is outputs ← products ← inputs, all
// linear in the inputs, so its transpose takes the deltas' values at the points (which the weights' gradient has
// made already), multiplies them with those of the weights, and spreads 8 products over 8 inputs: no tap outside
// the plane, and as few products as forward.
#pragma once
#include <cstddef>

#include "convolution.hpp"
#include "network.hpp"
#include "tiles.hpp"
#include "vector.hpp"

namespace feelstream {
namespace {

// For each tile of input channels: (point, out, kernel row from the last to the first, channel of the tile). The
// deltas carry the points' scale, so the weights' values go without.
inline void winograd_pack_backward(const Stage& s, const float* weight, float* packed) {
    constexpr int K = winograd_kernel;
    tile_bounds<channel_tile>(s.channels, [&](int first, int size) {
        for (int o = 0; o < s.out_channels; ++o)
            for (int ky = 0; ky < K; ++ky)
                for (int i = 0; i < size; ++i) {
                    const float* w = weight + ((std::ptrdiff_t(o) * s.channels + first + i) * K + ky) * K;
                    const float even = w[0] + w[2] + w[4], odd = w[1] + w[3];
                    const float even2 = w[0] + 4 * w[2] + 16 * w[4], odd2 = 2 * w[1] + 8 * w[3];
                    const float even_half = w[0] + 0.25f * w[2] + 0.0625f * w[4];
                    const float odd_half = 0.5f * w[1] + 0.125f * w[3];
                    const float value[winograd_points] = {
                        w[0],         even + odd,           even - odd,           even2 + odd2,
                        even2 - odd2, even_half + odd_half, even_half - odd_half, w[4]};
                    for (int j = 0; j < winograd_points; ++j)
                        packed[((std::ptrdiff_t(j) * s.out_channels + o) * K + K - 1 - ky) * size + i] = value[j];
                }
        packed += std::ptrdiff_t(winograd_points) * s.out_channels * K * size;
    });
}

// The transpose of inputs_at_points: what each of 8 inputs of a row gets from the products at the points.
inline void inputs_from_points(const Vec (&m)[winograd_points], Vec (&x)[8]) {
    const Vec sum1 = m[1] + m[2], difference1 = m[1] - m[2];
    const Vec sum2 = m[3] + m[4], difference2 = m[3] - m[4];
    const Vec sum_half = m[5] + m[6], difference_half = m[5] - m[6];
    x[0] = m[0];
    x[1] = difference1 + 0.5f * difference2 + 2.0f * difference_half - m[7];
    x[2] = sum1 + 0.25f * sum2 + 4.0f * sum_half - 5.25f * m[0];
    x[3] = 5.25f * m[7] - 4.25f * difference1 - 2.5f * (difference2 + difference_half);
    x[4] = 5.25f * m[0] - 4.25f * sum1 - 1.25f * sum2 - 5.0f * sum_half;
    x[5] = difference1 + 2.0f * difference2 + 0.5f * difference_half - 5.25f * m[7];
    x[6] = sum1 + sum2 + sum_half - m[0];
    x[7] = m[7];
}

// T tiles of one row of C input channels; `shared` holds what the tile before adds to this one's first 4 columns.
template <int C, int T>
inline void winograd_input_tiles(const Stage& s, const Window& window, const float* deltas, const float* weight, int x,
                                 float* to, Vec (&shared)[C][4]) {
    const std::ptrdiff_t plane = std::ptrdiff_t(s.conv_rows()) * s.row_tiles() * lanes;
    std::ptrdiff_t at[T];
    for (int t = 0; t < T; ++t) at[t] = t * lanes;
    Vec product[winograd_points][C][T];
    for (int j = 0; j < winograd_points; ++j) {
        Vec sums[C][T] = {};
        convolve_tile<1>(window, deltas + j * plane, at,
                         weight + std::ptrdiff_t(j) * s.out_channels * winograd_kernel * C, sums);
        for (int i = 0; i < C; ++i)
            for (int t = 0; t < T; ++t) product[j][i][t] = sums[i][t];
    }
    for (int i = 0; i < C; ++i)
        for (int t = 0; t < T; ++t) {
            Vec m[winograd_points], value[8];
            for (int j = 0; j < winograd_points; ++j) m[j] = product[j][i][t];
            inputs_from_points(m, value);
            float* row = to + std::ptrdiff_t(i) * s.rows * s.columns * lanes;
            for (int k = 0; k < 4; ++k) {
                if (x + 4 * t + k < s.columns) store(row + (x + 4 * t + k) * lanes, value[k] + shared[i][k]);
                shared[i][k] = value[4 + k];
            }
        }
}

template <int C>
FEELSTREAM_NOINLINE void winograd_input_row(const Stage& s, const float* deltas, const float* weight, int y,
                                            float* result) {
    constexpr int K = winograd_kernel;
    const std::ptrdiff_t row = std::ptrdiff_t(s.row_tiles()) * lanes, plane = s.conv_rows() * row;
    // Rows of deltas that row y of the input took part in, and the weights they go with.
    const int low = y < K ? 0 : y - K + 1, high = y < s.conv_rows() ? y : s.conv_rows() - 1;
    const int count = high - low + 1 > 0 ? high - low + 1 : 0;
    const Window window = {s.out_channels, count, 1, winograd_points * plane, row, 0, (K - count) * C};
    for (int v = 0; v < lanes; v += width) {
        float* to = result + y * s.columns * lanes + v;
        Vec shared[C][4] = {};
        tiles<2>(s.row_tiles(), [&](int tile, auto together) {
            winograd_input_tiles<C, decltype(together)::value>(s, window, deltas + low * row + tile * lanes + v,
                                                               weight + (low - (y - K + 1)) * C, 4 * tile, to, shared);
        });
        for (int i = 0; i < C; ++i)
            for (int x = 4 * s.row_tiles(); x < s.columns; ++x)
                store(to + (std::ptrdiff_t(i) * s.rows * s.columns + x) * lanes,
                      x < 4 * s.row_tiles() + 4 ? shared[i][x - 4 * s.row_tiles()] : Vec{});
    }
}

void winograd_input_gradient(const Stage& s, const float* deltas, const float* packed, float* result) {
    tiles<channel_tile>(s.channels, [&](int first, auto count) {
        constexpr int C = decltype(count)::value;
        const float* weight = packed + std::ptrdiff_t(first) * winograd_points * s.out_channels * winograd_kernel;
        for (int y = 0; y < s.rows; ++y)
            winograd_input_row<C>(s, deltas, weight, y, result + std::size_t(first) * s.rows * s.columns * lanes);
    });
}

}  // namespace
}  // namespace feelstream
