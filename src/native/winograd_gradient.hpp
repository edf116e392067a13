// The weights' gradient by the same points as winograd.hpp: 5 neighbouring taps of ∂/∂w from 8 inputs and 4 deltas
// of a row are again 8 products instead of 20, and the sum over rows, tiles and lanes happens among them.
#pragma once
#include <cstddef>

#include "convolution.hpp"
#include "network.hpp"
#include "tiles.hpp"
#include "vector.hpp"
#include "winograd.hpp"

namespace feelstream {
namespace {

// 4 deltas of a row at the points, scaled as the weights are in winograd.hpp.
inline void deltas_at_points(const Vec (&d)[winograd_columns], Vec (&value)[winograd_points]) {
    const Vec even = (d[0] + d[2]) * (-2.0f / 9), odd = (d[1] + d[3]) * (-2.0f / 9);
    const Vec even2 = (d[0] + 4.0f * d[2]) * (1.0f / 90), odd2 = (d[1] + 4.0f * d[3]) * (1.0f / 45);
    const Vec even_half = (4.0f * d[0] + d[2]) * (8.0f / 45), odd_half = (4.0f * d[1] + d[3]) * (4.0f / 45);
    value[0] = d[0];
    value[1] = even + odd;
    value[2] = even - odd;
    value[3] = even2 + odd2;
    value[4] = even2 - odd2;
    value[5] = even_half + odd_half;
    value[6] = even_half - odd_half;
    value[7] = d[3];
}

// Deltas of some pooled channels → (channel, point, row, tile, lane): unpooled and transformed in one go.
inline void winograd_deltas(const Stage& s, int first, int channels, const float* delta, const float* route,
                            float* points) {
    const std::ptrdiff_t row = std::ptrdiff_t(s.row_tiles()) * lanes, plane = s.conv_rows() * row;
    for (int c = first; c < first + channels; ++c)
        for (int y = 0; y < s.out_rows; ++y)
            for (int t = 0; t < s.row_tiles(); ++t)
                for (int v = 0; v < lanes; v += width) {
                    Vec d[2][winograd_columns] = {};
                    for (int half = 0; half < 2 && 2 * t + half < s.out_columns; ++half) {
                        const std::size_t from =
                            ((std::size_t(c) * s.out_rows + y) * s.out_columns + 2 * t + half) * lanes + v;
                        const Vec value = load(delta + from);
                        const Mask winner = load_mask(route + from);
                        for (int p = 0; p < 4; ++p) d[p / 2][2 * half + p % 2] = Vec(Mask(value) & (winner == p));
                    }
                    for (int r = 0; r < 2; ++r) {
                        Vec value[winograd_points];
                        deltas_at_points(d[r], value);
                        for (int j = 0; j < winograd_points; ++j)
                            store(points + (std::ptrdiff_t(c) * winograd_points + j) * plane + (2 * y + r) * row +
                                      t * lanes + v,
                                  value[j]);
                    }
                }
}

// One point's products for C output channels and the 5 kernel rows, summed over the plane and the lanes. A row of
// tiles follows the one before it in memory, so the plane is one long row to this loop.
template <int C>
FEELSTREAM_NOINLINE void winograd_products(const Stage& s, const float* x, const float* d, float* total) {
    constexpr int K = winograd_kernel;
    const std::ptrdiff_t row = std::ptrdiff_t(s.row_tiles()) * lanes, plane = s.conv_rows() * row;
    Vec sums[C * K] = {};
    for (std::ptrdiff_t left = plane; left > 0; left -= width, x += width, d += width) {
        Vec value[C];
        for (int i = 0; i < C; ++i) value[i] = load(d + i * winograd_points * plane);
        for (int k = 0; k < K; ++k) {
            const Vec pixel = load(x + k * row);
            for (int i = 0; i < C; ++i) sums[i * K + k] += value[i] * pixel;
        }
    }
    sum_lanes(sums, total);
}

// Reads 5 taps off the products of C × 5 kernel rows; m[point][channel of the tile · 5 + kernel row].
template <int C>
inline void add_taps(const Stage& s, const float (&m)[winograd_points][whole_vectors(C * winograd_kernel)],
                     float* gradient) {
    constexpr int K = winograd_kernel, N = C * K;
    float tap[K][N];
    for (int n = 0; n < N; ++n) {
        const float sum1 = m[1][n] + m[2][n], difference1 = m[1][n] - m[2][n];
        const float sum2 = m[3][n] + m[4][n], difference2 = m[3][n] - m[4][n];
        const float sum_half = m[5][n] + m[6][n], difference_half = m[5][n] - m[6][n];
        tap[0][n] = m[0][n] + sum1 + sum2 + sum_half;
        tap[1][n] = difference1 + 2 * difference2 + 0.5f * difference_half;
        tap[2][n] = sum1 + 4 * sum2 + 0.25f * sum_half;
        tap[3][n] = difference1 + 8 * difference2 + 0.125f * difference_half;
        tap[4][n] = sum1 + 16 * sum2 + 0.0625f * sum_half + m[7][n];
    }
    for (int i = 0; i < C; ++i)
        for (int ky = 0; ky < K; ++ky)
            for (int kx = 0; kx < K; ++kx)
                gradient[std::ptrdiff_t(i) * s.channels * K * K + ky * K + kx] += tap[kx][i * K + ky];
}

// `inputs` and `deltas` are room for the transformed arrays; `deltas` holds those of all channels in the end.
inline void winograd_weight_gradient(const Stage& s, const float* in, const float* delta, const float* route,
                                     float* inputs, float* deltas, float* gradient) {
    constexpr int K = winograd_kernel;
    const std::ptrdiff_t row = std::ptrdiff_t(s.row_tiles()) * lanes;
    const std::ptrdiff_t plane = s.rows * row, conv_plane = s.conv_rows() * row;
    winograd_inputs(s, in, inputs);
    tiles<gradient_channels>(s.out_channels, [&](int first, auto count) {
        constexpr int C = decltype(count)::value;
        winograd_deltas(s, first, C, delta, route, deltas);
        for (int c = 0; c < s.channels; ++c) {
            float m[winograd_points][whole_vectors(C * K)];
            for (int j = 0; j < winograd_points; ++j)
                winograd_products<C>(s, inputs + (j * s.channels + c) * plane,
                                     deltas + (std::ptrdiff_t(first) * winograd_points + j) * conv_plane, m[j]);
            add_taps<C>(s, m, gradient + (std::ptrdiff_t(first) * s.channels + c) * K * K);
        }
    });
}

}  // namespace
}  // namespace feelstream
