// Convolution with rows of 5 weights by Winograd's minimal filtering (Toom-Cook), one-dimensional:
// 8 inputs of a row and 5 weights, both seen as polynomials, are evaluated at the points
//     0, 1, -1, 2, -2, 1/2, -1/2, infinity,
// multiplied point by point, and 4 outputs are read off the products: 8 multiplications instead of 20.
// The sum over input channels and kernel rows happens among the products, so the transformations cost little,
// so that this pays for a layer of one channel too; winograd_square.hpp is for those of more.
#pragma once
#include <string.h>

#include <cstddef>

#include "convolution.hpp"
#include "network.hpp"
#include "pooling.hpp"
#include "tiles.hpp"
#include "vector.hpp"

namespace feelstream {
namespace {

// The weights' values at the points, each divided by the product of its differences to the other points.
inline void weights_at_points(const float (&w)[5], float (&value)[winograd_points]) {
    const float even = w[0] + w[2] + w[4], odd = w[1] + w[3];
    const float even2 = w[0] + 4 * w[2] + 16 * w[4], odd2 = 2 * w[1] + 8 * w[3];
    const float even_half = 16 * w[0] + 4 * w[2] + w[4], odd_half = 8 * w[1] + 2 * w[3];  // times 16
    value[0] = w[0];
    value[1] = (even + odd) * (-2.0f / 9);
    value[2] = (even - odd) * (-2.0f / 9);
    value[3] = (even2 + odd2) * (1.0f / 90);
    value[4] = (even2 - odd2) * (1.0f / 90);
    value[5] = (even_half + odd_half) * (2.0f / 45);
    value[6] = (even_half - odd_half) * (2.0f / 45);
    value[7] = w[4];
}

// The transpose of reading a product off its values: 8 inputs of a row to 8 points.
inline void inputs_at_points(const Vec (&x)[8], Vec (&value)[winograd_points]) {
    const Vec even = x[2] - 4.25f * x[4] + x[6], odd = x[1] - 4.25f * x[3] + x[5];
    const Vec even2 = 0.25f * x[2] - 1.25f * x[4] + x[6], odd2 = 0.5f * x[1] - 2.5f * x[3] + 2.0f * x[5];
    const Vec even_half = 4.0f * x[2] - 5.0f * x[4] + x[6], odd_half = 2.0f * x[1] - 2.5f * x[3] + 0.5f * x[5];
    value[0] = x[0] - x[6] + 5.25f * (x[4] - x[2]);
    value[1] = even + odd;
    value[2] = even - odd;
    value[3] = even2 + odd2;
    value[4] = even2 - odd2;
    value[5] = even_half + odd_half;
    value[6] = even_half - odd_half;
    value[7] = x[7] - x[1] + 5.25f * (x[3] - x[5]);
}

// From the products m at the points to 4 neighbouring outputs.
inline void outputs_from_points(const Vec (&m)[winograd_points], Vec (&y)[winograd_columns]) {
    const Vec sum1 = m[1] + m[2], difference1 = m[1] - m[2];
    const Vec sum2 = m[3] + m[4], difference2 = m[3] - m[4];
    const Vec sum_half = m[5] + m[6], difference_half = m[5] - m[6];
    y[0] = m[0] + sum1 + sum2 + sum_half;
    y[1] = difference1 + 2.0f * difference2 + 0.5f * difference_half;
    y[2] = sum1 + 4.0f * sum2 + 0.25f * sum_half;
    y[3] = difference1 + 8.0f * difference2 + 0.125f * difference_half + m[7];
}

// For each tile of output channels: (point, in, kernel row, channel of the tile).
inline void winograd_pack(const Stage& s, const float* weight, float* packed) {
    const std::size_t rows = std::size_t(s.channels) * winograd_kernel;
    tile_bounds<channel_tile>(s.out_channels, [&](int first, int size) {
        for (std::size_t r = 0; r < rows; ++r)
            for (int i = 0; i < size; ++i) {
                float w[winograd_kernel], value[winograd_points];
                memcpy(w, weight + ((first + i) * rows + r) * winograd_kernel, sizeof w);
                weights_at_points(w, value);
                for (int j = 0; j < winograd_points; ++j) packed[(j * rows + r) * size + i] = value[j];
            }
        packed += winograd_points * rows * size;
    });
}

// Input (channel, row, column, lane) → (point, channel, row, tile, lane). Tiles start 4 columns apart.
inline void winograd_inputs(const Stage& s, const float* in, float* points) {
    const std::ptrdiff_t rows = std::ptrdiff_t(s.channels) * s.rows, apart = rows * s.row_tiles() * lanes;
    for (std::ptrdiff_t row = 0; row < rows; ++row, in += s.columns * lanes)
        for (int t = 0; t < s.row_tiles(); ++t, points += lanes)
            for (int v = 0; v < lanes; v += width) {
                Vec x[8], value[winograd_points];
                const int first = t * winograd_columns;
                if (first + 8 <= s.columns)
                    for (int i = 0; i < 8; ++i) x[i] = load(in + (first + i) * lanes + v);
                else  // beyond the row, for outputs nobody will read
                    for (int i = 0; i < 8; ++i)
                        x[i] = first + i < s.columns ? load(in + (first + i) * lanes + v) : Vec{};
                inputs_at_points(x, value);
                for (int j = 0; j < winograd_points; ++j) store(points + j * apart + v, value[j]);
            }
}

// C output channels × T tiles × the two rows of a line of pooling windows.
template <int C, int T>
FEELSTREAM_NOINLINE void winograd_tile(const Stage& s, const float* points, const float* weight, const float* bias,
                                       int first, int y, int tile, float* output) {
    const std::ptrdiff_t row = std::ptrdiff_t(s.row_tiles()) * lanes, plane = s.rows * row;
    const Window window = {s.channels, winograd_kernel, 1, plane, row, 0, 0};
    const std::ptrdiff_t taps = std::ptrdiff_t(s.channels) * winograd_kernel;
    std::ptrdiff_t at[2 * T];
    for (int t = 0; t < T; ++t) at[t] = t * lanes, at[T + t] = t * lanes + row;
    for (int v = 0; v < lanes; v += width) {
        Vec product[winograd_points][C][2 * T];
        for (int j = 0; j < winograd_points; ++j) {
            Vec sums[C][2 * T] = {};
            convolve_tile<1>(window, points + j * s.channels * plane + 2 * y * row + tile * lanes + v, at,
                             weight + j * taps * C, sums);
            for (int i = 0; i < C; ++i)
                for (int p = 0; p < 2 * T; ++p) product[j][i][p] = sums[i][p];
        }
        for (int i = 0; i < C; ++i)
            for (int t = 0; t < T; ++t) {
                Vec values[2][winograd_columns];
                for (int r = 0; r < 2; ++r) {
                    Vec m[winograd_points];
                    for (int j = 0; j < winograd_points; ++j) m[j] = product[j][i][r * T + t];
                    outputs_from_points(m, values[r]);
                    for (Vec& value : values[r]) value += splat(bias[i]);
                }
                for (int half = 0; half < 2; ++half) {
                    const int x = (tile + t) * 2 + half;
                    if (x >= s.out_columns) continue;
                    const Vec four[4] = {values[0][2 * half], values[0][2 * half + 1], values[1][2 * half],
                                         values[1][2 * half + 1]};
                    pool_window<false>(four, s.relu, output + s.at(first + i, y, x) + v, nullptr);
                }
            }
    }
}

void winograd_convolve(const Stage& s, const float* in, float* points, const float* packed, const float* bias,
                       float* output) {
    winograd_inputs(s, in, points);
    const std::size_t taps = std::size_t(s.channels) * winograd_kernel * winograd_points;
    tiles<channel_tile>(s.out_channels, [&](int first, auto count) {
        constexpr int C = decltype(count)::value;
        for (int y = 0; y < s.out_rows; ++y)
            tiles<position_tile / 2>(s.row_tiles(), [&](int tile, auto together) {
                winograd_tile<C, decltype(together)::value>(s, points, packed + first * taps, bias + first, first, y,
                                                            tile, output);
            });
    });
}

}  // namespace
}  // namespace feelstream
