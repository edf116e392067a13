// Convolution, stride 1, no padding. All arrays are (channel, row, column, lane).
#pragma once
#include <cstddef>

#include "network.hpp"
#include "pooling.hpp"
#include "tiles.hpp"
#include "vector.hpp"

namespace feelstream {
namespace {

// Weight gradient: channels × kernel columns of accumulators, for kernels of up to 3 columns and for others.
constexpr int gradient_channels = registers == 32 ? 5 : 2, gradient_columns = 5;
constexpr int slim_channels = registers == 32 ? 8 : 4, slim_columns = 3;

// Weights (out, in, row, column) → for each tile of output channels: (in, row, column, channel of the tile).
inline void pack_forward(const Stage& s, const float* weight, float* packed) {
    const int taps = s.channels * s.kernel_area();
    tile_bounds<channel_tile>(s.out_channels, [&](int first, int size) {
        for (int t = 0; t < taps; ++t)
            for (int i = 0; i < size; ++i) *packed++ = weight[std::size_t(first + i) * taps + t];
    });
}

// → for each tile of input channels: (out, row, column, channel of the tile).
inline void pack_backward(const Stage& s, const float* weight, float* packed) {
    const int area = s.kernel_area();
    tile_bounds<channel_tile>(s.channels, [&](int first, int size) {
        for (int out = 0; out < s.out_channels; ++out)
            for (int t = 0; t < area; ++t)
                for (int i = 0; i < size; ++i)
                    *packed++ = weight[(std::size_t(out) * s.channels + first + i) * area + t];
    });
}

// What one output looks at: a block of numbers, and how far apart they are in memory.
struct Window {
    int channels, rows, columns;
    std::ptrdiff_t plane, row, column;
    std::ptrdiff_t skip;  // weights to pass over after each channel
};

inline Window window_of(const Stage& s) {
    const std::ptrdiff_t row = std::ptrdiff_t(s.columns) * lanes;
    return {s.channels, s.kernel_rows, s.kernel_columns, s.rows * row, row, lanes, 0};
}

// The heart: add to the sums of C output channels at P positions their products of window and weights.
// `at[p]` is where position p's window starts, relative to `in`.
// `Columns` is how many columns the window has, if the compiler is to know, else 0.
template <int Columns, int C, int P>
inline void convolve_tile(const Window& window, const float* in, const std::ptrdiff_t (&at)[P], const float* weight,
                          Vec (&sums)[C][P]) {
    const int columns = Columns ? Columns : window.columns;
    for (int c = 0; c < window.channels; ++c, weight += window.skip)
        for (int ky = 0; ky < window.rows; ++ky) {
            const float* x = in + c * window.plane + ky * window.row;
            for (int kx = 0; kx < columns; ++kx, x += window.column, weight += C) {
                Vec value[P];
                for (int p = 0; p < P; ++p) value[p] = load(x + at[p]);
                for (int i = 0; i < C; ++i) {
                    const Vec w = splat(weight[i]);
                    for (int p = 0; p < P; ++p) sums[i][p] += value[p] * w;
                }
            }
        }
}

// A line of pooling windows of Rows × Columns, whose sums never leave the registers or the innermost cache.
template <int C, int Rows, int Columns, bool Train>
FEELSTREAM_NOINLINE void convolve_pooled(const Stage& s, const float* in, const float* weight, const float* bias,
                                         int first, int y, float* output, float* route) {
    constexpr int P = Rows * Columns < position_tile ? Rows * Columns : position_tile, parts = Rows * Columns / P;
    const std::ptrdiff_t row = std::ptrdiff_t(s.columns) * lanes;
    const Window window = window_of(s);
    for (int x = 0; x < s.out_columns; ++x)
        for (int v = 0; v < lanes; v += width) {
            const float* from = in + Rows * y * row + Columns * x * lanes + v;
            Vec value[parts][C][P];
            for (int part = 0; part < parts; ++part) {
                std::ptrdiff_t at[P];
                for (int p = 0; p < P; ++p) at[p] = (part * P + p) / Columns * row + (part * P + p) % Columns * lanes;
                Vec sums[C][P];
                for (int i = 0; i < C; ++i)
                    for (int p = 0; p < P; ++p) sums[i][p] = splat(bias[i]);
                if (s.kernel_columns == 5)
                    convolve_tile<5>(window, from, at, weight, sums);
                else
                    convolve_tile<0>(window, from, at, weight, sums);
                for (int i = 0; i < C; ++i)
                    for (int p = 0; p < P; ++p) value[part][i][p] = sums[i][p];
            }
            for (int i = 0; i < C; ++i) {
                const std::size_t to = ((std::size_t(first + i) * s.out_rows + y) * s.out_columns + x) * lanes + v;
                Vec all[Rows * Columns];
                for (int p = 0; p < Rows * Columns; ++p) all[p] = value[p / P][i][p % P];
                pool_window<Train>(all, s.relu, output + s.at(first + i, y, x) + v, route + to);
            }
        }
}

template <int C>
FEELSTREAM_NOINLINE void convolve_row(const Stage& s, const float* in, const float* weight, const float* bias,
                                      int first, int y, float* output) {
    const std::ptrdiff_t row = std::ptrdiff_t(s.columns) * lanes;
    for (int x = 0; x < s.out_columns; x += position_tile)
        with_size<position_tile>(
            s.out_columns - x < position_tile ? s.out_columns - x : position_tile, [&](auto count) {
                constexpr int P = decltype(count)::value;
                std::ptrdiff_t at[P];
                for (int p = 0; p < P; ++p) at[p] = p * lanes;
                for (int v = 0; v < lanes; v += width) {
                    Vec sums[C][P];
                    for (int i = 0; i < C; ++i)
                        for (int p = 0; p < P; ++p) sums[i][p] = splat(bias[i]);
                    convolve_tile<0>(window_of(s), in + y * row + x * lanes + v, at, weight, sums);
                    for (int i = 0; i < C; ++i)
                        for (int p = 0; p < P; ++p)
                            store(output + ((std::size_t(first + i) * s.out_rows + y) * s.out_columns + x + p) * lanes +
                                      v,
                                  s.relu ? relu(sums[i][p]) : sums[i][p]);
                }
            });
}

template <bool Train>
void convolve(const Stage& s, const float* in, const float* packed, const float* bias, float* output, float* route) {
    const std::size_t taps = std::size_t(s.channels) * s.kernel_area();
    tiles<channel_tile>(s.out_channels, [&](int first, auto count) {
        constexpr int C = decltype(count)::value;
        for (int y = 0; y < s.out_rows; ++y)
            if (!s.pool)
                convolve_row<C>(s, in, packed + first * taps, bias + first, first, y, output);
            else if (s.pool_rows == 1)
                convolve_pooled<C, 1, 2, Train>(s, in, packed + first * taps, bias + first, first, y, output, route);
            else if (s.pool_columns == 1)
                convolve_pooled<C, 2, 1, Train>(s, in, packed + first * taps, bias + first, first, y, output, route);
            else
                convolve_pooled<C, 2, 2, Train>(s, in, packed + first * taps, bias + first, first, y, output, route);
    });
}

// ∂/∂w[o, c, ky, kx] = Σ over positions and lanes of delta[o, y, x] · in[c, y + ky, x + kx]:
// C × K accumulators run over some rows; sums[kx][channel of the tile] is where they come from and go to.
template <int C, int K>
FEELSTREAM_NOINLINE void weight_gradient_rows(const Stage& s, const float* in, Planes delta, int rows, float* sums) {
    const int columns = s.conv_columns();
    Vec total[K][C];
    for (int k = 0; k < K; ++k)
        for (int i = 0; i < C; ++i) total[k][i] = load(sums + (k * C + i) * width);
    for (int y = 0; y < rows; ++y) {
        const float* x = in + std::ptrdiff_t(y) * s.columns * lanes;
        const float* d = delta.memory + y * delta.row;
        for (int left = columns * lanes; left > 0; left -= width, x += width, d += width)
            if constexpr (K < C) {
                Vec pixel[K];
                for (int k = 0; k < K; ++k) pixel[k] = load(x + k * lanes);
                for (int i = 0; i < C; ++i) {
                    const Vec value = load(d + i * delta.channel);
                    for (int k = 0; k < K; ++k) total[k][i] += value * pixel[k];
                }
            } else {
                Vec value[C];
                for (int i = 0; i < C; ++i) value[i] = load(d + i * delta.channel);
                for (int k = 0; k < K; ++k) {
                    const Vec pixel = load(x + k * lanes);
                    for (int i = 0; i < C; ++i) total[k][i] += value[i] * pixel;
                }
            }
    }
    for (int k = 0; k < K; ++k)
        for (int i = 0; i < C; ++i) store(sums + (k * C + i) * width, total[k][i]);
}

// Rows of deltas at a time, so that they and their inputs stay in the innermost cache while all taps use them;
// but all of them where the sums themselves would not.
inline int band_rows(const Stage& s, int channels) {
    const std::size_t sums = s.channels * s.kernel_area() * channels * width * sizeof(float);
    const std::size_t row = std::size_t(channels) * s.conv_columns() * lanes * sizeof(float);
    if (sums > 16384) return s.out_rows;
    const int rows = int(12288 / (row * s.pool_rows));
    return rows < 1 ? 1 : rows > s.out_rows ? s.out_rows : rows;
}

// With pooling, deltas are unpooled a band of some channels at a time, into `spread`: all of them at their place if
// they will be wanted again (`keep`), else each over the one before. `sums` is room for Stage::gradient_sums.
template <int Channels, int Columns>
void weight_gradient(const Stage& s, const float* in, float* delta, const float* route, float* spread, bool keep,
                     float* sums, float* gradient) {
    const std::ptrdiff_t row = std::ptrdiff_t(s.conv_columns()) * lanes, plane = s.conv_rows() * row;
    const int taps = s.channels * s.kernel_area(), band = band_rows(s, Channels);
    tiles<Channels>(s.out_channels, [&](int first, auto count) {
        constexpr int C = decltype(count)::value;
        for (int i = 0; i < taps * C * width; ++i) sums[i] = 0;
        for (int y = 0; y < s.out_rows; y += band) {
            const int rows = s.out_rows - y < band ? s.out_rows - y : band, start = y * s.pool_rows;
            Planes from = {(s.pool ? spread : delta) + first * plane + start * row, plane, row};
            if (s.pool && !keep) from = {spread, band * s.pool_rows * row, row};
            if (s.pool) unpool(s, first, C, y, rows, delta, route, from);
            for (int c = 0; c < s.channels; ++c)
                for (int ky = 0; ky < s.kernel_rows; ++ky)
                    tiles<Columns>(s.kernel_columns, [&](int kx, auto size) {
                        weight_gradient_rows<C, decltype(size)::value>(
                            s, in + ((std::size_t(c) * s.rows + start + ky) * s.columns + kx) * lanes, from,
                            rows * s.pool_rows, sums + ((c * s.kernel_rows + ky) * s.kernel_columns + kx) * C * width);
                    });
        }
        for (int t = 0; t < taps; ++t) {
            Vec lanes_of[C];
            float total[whole_vectors(C)];
            for (int i = 0; i < C; ++i) lanes_of[i] = load(sums + (t * C + i) * width);
            sum_lanes(lanes_of, total);
            for (int i = 0; i < C; ++i) gradient[std::ptrdiff_t(first + i) * taps + t] += total[i];
        }
    });
}

inline void weight_gradient(const Stage& s, const float* in, float* delta, const float* route, float* spread, bool keep,
                            float* sums, float* gradient) {
    if (s.kernel_columns <= slim_columns)
        weight_gradient<slim_channels, slim_columns>(s, in, delta, route, spread, keep, sums, gradient);
    else
        weight_gradient<gradient_channels, gradient_columns>(s, in, delta, route, spread, keep, sums, gradient);
}

// ∂/∂in[c, y, x] = Σ over o, ky, kx of w[o, c, ky, kx] · delta[o, y − ky, x − kx], over the taps that exist:
// rows by the bounds of ky, columns by a test that only tiles at the border make.
template <int C, bool Border>
inline void input_gradient_tile(const Stage& s, const float* delta, const float* weight, int y, int x,
                                Vec (&sums)[C][position_tile]) {
    const int rows = s.conv_rows(), columns = s.conv_columns();
    const int low = y - rows + 1 > 0 ? y - rows + 1 : 0, high = y < s.kernel_rows - 1 ? y : s.kernel_rows - 1;
    for (int i = 0; i < C; ++i)
        for (int p = 0; p < position_tile; ++p) sums[i][p] = Vec{};
    for (int out = 0; out < s.out_channels; ++out)
        for (int ky = low; ky <= high; ++ky) {
            const std::ptrdiff_t start = (std::ptrdiff_t(out) * rows + y - ky) * columns;
            const float* w = weight + (std::ptrdiff_t(out) * s.kernel_rows + ky) * s.kernel_columns * C;
            for (int kx = 0; kx < s.kernel_columns; ++kx, w += C) {
                const float* d = delta + (start + x - kx) * lanes;
                Vec tap[C];
                for (int i = 0; i < C; ++i) tap[i] = splat(w[i]);
                for (int p = 0; p < position_tile; ++p) {
                    if (Border && unsigned(x + p - kx) >= unsigned(columns)) continue;
                    const Vec value = load(d + p * lanes);
                    for (int i = 0; i < C; ++i) sums[i][p] += value * tap[i];
                }
            }
        }
}

template <int C, bool Border>
FEELSTREAM_NOINLINE void input_gradient_columns(const Stage& s, const float* delta, const float* weight, int first,
                                                int y, int x, float* result) {
    for (int v = 0; v < lanes; v += width) {
        Vec sums[C][position_tile];
        input_gradient_tile<C, Border>(s, delta + v, weight, y, x, sums);
        for (int i = 0; i < C; ++i)
            for (int p = 0; p < position_tile; ++p)
                if (x + p < s.columns)
                    store(result + ((std::size_t(first + i) * s.rows + y) * s.columns + x + p) * lanes + v, sums[i][p]);
    }
}

void input_gradient(const Stage& s, const float* delta, const float* packed, float* result) {
    const std::size_t taps = std::size_t(s.out_channels) * s.kernel_area();
    tiles<channel_tile>(s.channels, [&](int first, auto count) {
        constexpr int C = decltype(count)::value;
        for (int y = 0; y < s.rows; ++y)
            for (int x = 0; x < s.columns; x += position_tile)
                if (x >= s.kernel_columns - 1 && x + position_tile <= s.conv_columns())
                    input_gradient_columns<C, false>(s, delta, packed + first * taps, first, y, x, result);
                else
                    input_gradient_columns<C, true>(s, delta, packed + first * taps, first, y, x, result);
    });
}

}  // namespace
}  // namespace feelstream
