// Minimal filtering along rows and columns: 4×4 outputs of a 5×5 kernel from 8×8 inputs by 64 products instead of 400.
// The points are those of winograd.hpp, once for each direction. It pays where several channels share the
// transformations, and its rounding is five times that of a direct sum (see docs/archive/engine.md).
#pragma once
#include <string.h>

#include <cstddef>

#include "convolution.hpp"
#include "network.hpp"
#include "pooling.hpp"
#include "tiles.hpp"
#include "vector.hpp"
#include "winograd.hpp"

namespace feelstream {
namespace {

constexpr int square_points = winograd_points * winograd_points;

// For each tile of output channels: (point, in, channel of the tile).
inline void square_pack(const Stage& s, const float* weight, float* packed) {
    constexpr int K = winograd_kernel, N = winograd_points;
    tile_bounds<channel_tile>(s.out_channels, [&](int first, int size) {
        for (int c = 0; c < s.channels; ++c)
            for (int i = 0; i < size; ++i) {
                float rows[K][N];
                for (int y = 0; y < K; ++y) {
                    float w[K];
                    memcpy(w, weight + ((std::ptrdiff_t(first + i) * s.channels + c) * K + y) * K, sizeof w);
                    weights_at_points(w, rows[y]);
                }
                for (int j = 0; j < N; ++j) {
                    const float column[K] = {rows[0][j], rows[1][j], rows[2][j], rows[3][j], rows[4][j]};
                    float value[N];
                    weights_at_points(column, value);
                    for (int k = 0; k < N; ++k)
                        packed[(std::ptrdiff_t(k * N + j) * s.channels + c) * size + i] = value[k];
                }
            }
        packed += std::ptrdiff_t(square_points) * s.channels * size;
    });
}

// Input (channel, row, column, lane) → (point, channel, tile, lane); zeros beyond the plane, for outputs nobody reads.
inline void square_inputs(const Stage& s, const float* in, float* points) {
    constexpr int N = winograd_points;
    const std::ptrdiff_t row = std::ptrdiff_t(s.columns) * lanes;
    const std::ptrdiff_t apart = std::ptrdiff_t(s.channels) * s.square_tiles() * lanes;
    for (int c = 0; c < s.channels; ++c, in += s.rows * row)
        for (int t = 0; t < s.square_tiles(); ++t, points += lanes) {
            const int top = t / s.row_tiles() * winograd_columns, left = t % s.row_tiles() * winograd_columns;
            for (int v = 0; v < lanes; v += width) {
                Vec rows[N][N];
                for (int y = 0; y < N; ++y) {
                    Vec x[N];
                    for (int i = 0; i < N; ++i)
                        x[i] = top + y < s.rows && left + i < s.columns
                                   ? load(in + (top + y) * row + (left + i) * lanes + v)
                                   : Vec{};
                    inputs_at_points(x, rows[y]);
                }
                for (int j = 0; j < N; ++j) {
                    Vec column[N], value[N];
                    for (int y = 0; y < N; ++y) column[y] = rows[y][j];
                    inputs_at_points(column, value);
                    for (int k = 0; k < N; ++k) store(points + (k * N + j) * apart + v, value[k]);
                }
            }
        }
}

// At every point: the products of C channels' weights with T tiles, summed over `channels` of the transformed array.
template <int C, int T>
inline void square_products(int channels, int tiles, const float* points, const float* weight,
                            Vec (&product)[square_points][C][T]) {
    const Window window = {channels, 1, 1, std::ptrdiff_t(tiles) * lanes, 0, 0, 0};
    std::ptrdiff_t at[T];
    for (int t = 0; t < T; ++t) at[t] = t * lanes;
    for (int j = 0; j < square_points; ++j) {
        Vec sums[C][T] = {};
        convolve_tile<1>(window, points + j * channels * window.plane, at, weight + std::ptrdiff_t(j) * channels * C,
                         sums);
        for (int i = 0; i < C; ++i)
            for (int t = 0; t < T; ++t) product[j][i][t] = sums[i][t];
    }
}

// One tile of one channel: 8×8 products to 4×4 outputs, of which pooling leaves 2×2.
template <int C, int T>
inline void square_outputs(const Stage& s, const Vec (&product)[square_points][C][T], int i, int t, int tile, Vec bias,
                           float* output) {
    constexpr int N = winograd_points, M = winograd_columns;
    Vec rows[N][M], value[M][M];
    for (int k = 0; k < N; ++k) {
        Vec m[N];
        for (int j = 0; j < N; ++j) m[j] = product[k * N + j][i][t];
        outputs_from_points(m, rows[k]);
    }
    for (int x = 0; x < M; ++x) {
        Vec m[N], y[M];
        for (int k = 0; k < N; ++k) m[k] = rows[k][x];
        outputs_from_points(m, y);
        for (int r = 0; r < M; ++r) value[r][x] = y[r] + bias;
    }
    const int top = tile / s.row_tiles() * 2, left = tile % s.row_tiles() * 2;
    for (int y = 0; y < 2 && top + y < s.out_rows; ++y)
        for (int x = 0; x < 2 && left + x < s.out_columns; ++x) {
            const Vec four[4] = {value[2 * y][2 * x], value[2 * y][2 * x + 1], value[2 * y + 1][2 * x],
                                 value[2 * y + 1][2 * x + 1]};
            pool_window<false>(four, s.relu, output + s.at(0, top + y, left + x), nullptr);
        }
}

template <int C, int T>
FEELSTREAM_NOINLINE void square_tile(const Stage& s, const float* points, const float* weight, const float* bias,
                                     int tile, float* output) {
    for (int v = 0; v < lanes; v += width) {
        Vec product[square_points][C][T];
        square_products<C, T>(s.channels, s.square_tiles(), points + tile * lanes + v, weight, product);
        for (int i = 0; i < C; ++i)
            for (int t = 0; t < T; ++t)
                square_outputs<C, T>(s, product, i, t, tile + t, splat(bias[i]), output + s.at(i, 0, 0) + v);
    }
}

void square_convolve(const Stage& s, const float* in, float* points, const float* packed, const float* bias,
                     float* output) {
    square_inputs(s, in, points);
    tiles<channel_tile>(s.out_channels, [&](int first, auto count) {
        constexpr int C = decltype(count)::value;
        tiles<2>(s.square_tiles(), [&](int tile, auto together) {
            square_tile<C, decltype(together)::value>(s, points,
                                                      packed + std::ptrdiff_t(first) * square_points * s.channels,
                                                      bias + first, tile, output + s.at(first, 0, 0));
        });
    });
}

}  // namespace
}  // namespace feelstream
