// Convolution by minimal filtering, forward: filter.hpp has the arithmetic, this file the order in memory.
// Tiles of outputs are taken a strip at a time, so many that their points stay in the second cache.
#pragma once
#include <cstddef>

#include "filter.hpp"
#include "network.hpp"
#include "pooling.hpp"
#include "product.hpp"
#include "tiles.hpp"
#include "vector.hpp"

namespace feelstream {
namespace {

// Weights (out, in, taps) → (point, out, in), the latter with room up to Stage::padded_channels.
template <class F>
void filter_weights(const Stage& s, const float* weight, float* points) {
    const std::ptrdiff_t apart = s.weight_points_apart();
    for (int o = 0; o < s.out_channels; ++o)
        for (int c = 0; c < s.channels; c += width) {
            float taps[F::taps][width] = {};
            const int count = s.channels - c < width ? s.channels - c : width;
            const float* from = weight + (std::ptrdiff_t(o) * s.channels + c) * F::taps;
            for (int i = 0; i < count; ++i)
                for (int t = 0; t < F::taps; ++t) taps[t][i] = *from++;
            float* to = points + std::ptrdiff_t(o) * s.padded_channels() + c;
            F::weights_to_points([&](int t) { return load(taps[t]); },
                                 [&](int j, Vec value) { store(to + j * apart, value); });
        }
}

// Where a tile's outputs begin.
template <class F>
struct Corner {
    int top, left;
    Corner(const Stage& s, int tile) {
        const int across = s.tiles_across(F::columns);
        top = tile / across * F::rows, left = tile % across * F::columns;
    }
};

// Inputs of `count` tiles → (tile, point, channel, lane); zeros beyond the plane, for outputs nobody reads.
template <class F>
FEELSTREAM_NOINLINE void filter_inputs(const Stage& s, const float* in, int first, int count, float* points) {
    const std::ptrdiff_t row = std::ptrdiff_t(s.columns) * lanes, apart = points_apart(s.channels);
    for (int t = 0; t < count; ++t) {
        const Corner<F> corner(s, first + t);
        const int rows = s.rows - corner.top, columns = s.columns - corner.left;
        const bool whole = rows >= F::in_rows && columns >= F::in_columns;
        for (int c = 0; c < s.channels; ++c) {
            const float* from = in + (std::ptrdiff_t(c) * s.rows + corner.top) * row + corner.left * lanes;
            float* to = points + t * F::points * apart + c * lanes;
            for (int v = 0; v < lanes; v += width, from += width, to += width) {
                const auto write = [&](int j, Vec value) { store(to + j * apart, value); };
                if (F::in_rows > 1 && whole) {
                    F::inputs_to_points(
                        [&](int i) { return load(from + i / F::in_columns * row + i % F::in_columns * lanes); }, write);
                    continue;
                }
                // Which products of a sum the compiler fuses hangs on what stands around them. Rows go this way, as
                // they always did, so that training keeps its bits.
                Vec x[F::points];
                if (whole)
                    for (int i = 0; i < F::in_columns; ++i) x[i] = load(from + i * lanes);
                else
                    for (int y = 0; y < F::in_rows; ++y)
                        for (int i = 0; i < F::in_columns; ++i)
                            x[y * F::in_columns + i] =
                                y < rows && i < columns ? load(from + y * row + i * lanes) : Vec{};
                F::inputs_to_points([&](int i) { return x[i]; }, write);
            }
        }
    }
}

// Where a vector has all lanes of a tile, several tiles are multiplied together, else several vectors of one.
constexpr bool tiles_together = position_tile * width > lanes;

// f(tile, lane, Size<vectors>) for all vectors of `count` tiles, up to Vectors of them at a time.
template <int Vectors, class F>
inline void tile_vectors(int count, F&& f) {
    if constexpr (tiles_together)
        tiles<Vectors>(count, [&](int tile, auto together) { f(tile, 0, together); });
    else
        for (int tile = 0; tile < count; ++tile)
            for (int v = 0; v < lanes; v += Vectors * width) f(tile, v, Size<Vectors>{});
}

// C channels × P vectors of products at one column of points (a point of a row's transformation, all rows), which lie
// in (tile, point, channel, lane) of `channels`; factors of a point are factors_apart from those of the one before.
// With tiles_together the vectors are of neighbouring tiles.
template <class F, int C, int P>
inline void column_products(int channels, Factors factors, std::ptrdiff_t factors_apart, const float* points,
                            Vec (&product)[C][P][F::in_rows]) {
    const std::ptrdiff_t apart = points_apart(channels), next = tiles_together ? F::points * apart : width;
    const std::ptrdiff_t down = F::in_columns * apart, factors_down = F::in_columns * factors_apart;
    for (int k = 0; k < F::in_rows; ++k) {
        Vec sums[C][P];
        for (int i = 0; i < C; ++i)
            for (int p = 0; p < P; ++p) sums[i][p] = Vec{};
        add_products(channels, factors, points, lanes, next, sums);
        for (int i = 0; i < C; ++i)
            for (int p = 0; p < P; ++p) product[i][p][k] = sums[i][p];
        factors.at += factors_down, points += down;
    }
}

// A tile of outputs of one channel, read off its lines: pooled if the stage pools, else as they are. `output` and
// `route` are those of its lane. What lies beyond the plane is computed and not stored.
template <class F, bool Train>
inline void filter_store(const Stage& s, Corner<F> corner, int channel, const Vec (&lines)[F::rows * F::in_columns],
                         Vec bias, Vec floor, float* output, float* route) {
    constexpr int rows = F::rows == 1 ? 1 : 2;  // of a pooling window
    const std::ptrdiff_t line = std::ptrdiff_t(s.plane_columns) * lanes;
    const int top = s.pool ? corner.top / rows : corner.top, left = s.pool ? corner.left / 2 : corner.left;
    float* to = output + s.at(channel, top, left);
    FEELSTREAM_UNROLL(4)
    for (int y = 0; y < F::rows / rows; ++y) {
        Vec value[rows * F::columns];
        F::template outputs_from_lines<rows>(lines + y * rows * F::in_columns, value);
        // The largest of the sums and a bias is the largest sum and the bias, to the last bit; which one may differ.
        if (Train || !s.pool)
            for (Vec& one : value) one += bias;
        if (!s.pool) {
            for (int p = 0; p < rows * F::columns; ++p) {
                const int down = rows * y + p / F::columns, right = p % F::columns;
                if (top + down < s.out_rows && left + right < s.out_columns)
                    store(to + down * line + right * lanes, larger(floor, value[p]));
            }
            continue;
        }
        FEELSTREAM_UNROLL(2)
        for (int x = 0; x < F::columns / 2; ++x) {
            Vec window[rows * 2];
            for (int p = 0; p < rows * 2; ++p) window[p] = value[p / 2 * F::columns + 2 * x + p % 2];
            const bool inside = top + y < s.out_rows && left + x < s.out_columns;
            if constexpr (Train) {
                const std::ptrdiff_t winner =
                    (std::ptrdiff_t(channel) * s.out_rows + top + y) * s.out_columns + left + x;
                if (inside) pool_window<true>(window, s.relu, to + y * line + x * lanes, route + winner * lanes);
            } else {
                const Vec best = larger(floor, largest_of(window) + bias);
                if (inside) store(to + y * line + x * lanes, best);
            }
        }
    }
}

// C output channels of P vectors; `tile` is that of the first, and `points` and `output` are at its lane. A column of
// points is read off as soon as its products are made, while they are in the first cache.
template <class F, bool Train, int C, int P>
FEELSTREAM_NOINLINE void filter_outputs(const Stage& s, const float* points, const float* weights, const float* bias,
                                        int first, int tile, float* output, float* route) {
    const std::ptrdiff_t apart = points_apart(s.channels);
    Vec lines[C][P][F::rows * F::in_columns];
    for (int j = 0; j < F::in_columns; ++j) {
        Vec product[C][P][F::in_rows];
        const float* factors = weights + j * s.weight_points_apart() + first * s.padded_channels();
        column_products<F>(s.channels, {factors, s.padded_channels(), 1}, s.weight_points_apart(), points + j * apart,
                           product);
        for (int i = 0; i < C; ++i)
            for (int p = 0; p < P; ++p) {
                Vec column[F::rows];
                F::outputs_from_column(product[i][p], column);
                for (int y = 0; y < F::rows; ++y) lines[i][p][y * F::in_columns + j] = column[y];
            }
    }
    const Vec floor = splat(s.relu ? 0.0f : -__builtin_inff());  // of outputs: NaN stays NaN, as in relu()
    for (int p = 0; p < P; ++p) {
        const Corner<F> corner(s, tiles_together ? tile + p : tile);
        const int lane = tiles_together ? 0 : p * width;
        for (int i = 0; i < C; ++i)
            filter_store<F, Train>(s, corner, first + i, lines[i][p], splat(bias[first + i]), floor, output + lane,
                                   route + lane);
    }
}

// `count` tiles from `start` on, whose points are given; up to P vectors at a time.
template <class F, bool Train, int P>
void filter_tiles(const Stage& s, int start, int count, const float* points, const float* weights, const float* bias,
                  float* output, float* route) {
    tiles<channel_tile>(s.out_channels, [&](int first, auto size) {
        tile_vectors<P>(count, [&](int tile, int v, auto together) {
            filter_outputs<F, Train, decltype(size)::value, decltype(together)::value>(
                s, points + tile * F::points * points_apart(s.channels) + v, weights, bias, first, start + tile,
                output + v, route + v);
        });
    });
}

template <class F, bool Train>
void filter_convolve(const Stage& s, const float* in, float* points, const float* weights, const float* bias,
                     float* output, float* route) {
    const int all = s.tile_count(F::rows, F::columns), fit = strip_of(F::points, s.channels);
    // Where each tile reads the weights by itself, these need room in the second cache too.
    const int strip = tiles_together ? fit : (fit + 1) / 2;
    for (int start = 0; start < all; start += strip) {
        const int count = all - start < strip ? all - start : strip;
        filter_inputs<F>(s, in, start, count, points);
        // Several tiles share the weights; with few channels there are few, and what is read off had better be near.
        if (s.channels < 8)
            filter_tiles<F, Train, 2>(s, start, count, points, weights, bias, output, route);
        else
            filter_tiles<F, Train, position_tile>(s, start, count, points, weights, bias, output, route);
    }
}

}  // namespace
}  // namespace feelstream
