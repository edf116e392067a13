// The gradients of a convolution by minimal filtering. Forward is outputs ← products ← inputs and weights, linear in
// each, so that its transpose takes the deltas to the points, where the gradient of the weights is their product with
// the inputs and the gradient of the inputs their product with the weights; both are then read off the points,
// backwards.
#pragma once
#include <cstddef>

#include "filter.hpp"
#include "filter_forward.hpp"
#include "network.hpp"
#include "product.hpp"
#include "tiles.hpp"
#include "turn.hpp"
#include "vector.hpp"

namespace feelstream {
namespace {

// The deltas of one tile and some lanes; zero where there is no output.
template <class F>
inline void tile_deltas(const Stage& s, Corner<F> corner, const float* delta, const float* route,
                        Vec (&value)[F::rows * F::columns]) {
    constexpr int rows = F::rows == 1 ? 1 : 2;
    if (s.pool) {
        for (int y = 0; y < F::rows / rows; ++y)
            for (int x = 0; x < F::columns / 2; ++x) {
                const int down = corner.top / rows + y, right = corner.left / 2 + x;
                const bool inside = down < s.out_rows && right < s.out_columns;
                const std::ptrdiff_t from = (down * std::ptrdiff_t(s.out_columns) + right) * lanes;
                const Vec one = inside ? load(delta + from) : Vec{};
                const Mask winner = inside ? load_mask(route + from) : Mask{};
                for (int p = 0; p < rows * 2; ++p)
                    value[(rows * y + p / 2) * F::columns + 2 * x + p % 2] = Vec(Mask(one) & (winner == p));
            }
        return;
    }
    for (int y = 0; y < F::rows; ++y)
        for (int x = 0; x < F::columns; ++x) {
            const int down = corner.top + y, right = corner.left + x;
            value[y * F::columns + x] = down < s.out_rows && right < s.out_columns
                                            ? load(delta + (down * std::ptrdiff_t(s.out_columns) + right) * lanes)
                                            : Vec{};
        }
}

// Deltas of `count` tiles → (tile, point, out channel, lane).
template <class F>
FEELSTREAM_NOINLINE void filter_deltas(const Stage& s, const float* delta, const float* route, int first, int count,
                                       float* points) {
    const std::ptrdiff_t plane = std::ptrdiff_t(s.out_rows) * s.out_columns * lanes;
    const std::ptrdiff_t apart = points_apart(s.out_channels);
    for (int t = 0; t < count; ++t) {
        const Corner<F> corner(s, first + t);
        for (int o = 0; o < s.out_channels; ++o)
            for (int v = 0; v < lanes; v += width) {
                Vec y[F::rows * F::columns];
                tile_deltas<F>(s, corner, delta + o * plane + v, route + o * plane + v, y);
                float* to = points + t * F::points * apart + o * lanes + v;
                F::outputs_to_points([&](int i) { return y[i]; },
                                     [&](int j, Vec value) { store(to + j * apart, value); });
            }
    }
}

// Of `count` tiles, whose deltas are delta_tile apart.
template <int C, int P>
FEELSTREAM_NOINLINE void add_weight_products(int count, Factors deltas, std::ptrdiff_t delta_tile, const float* turned,
                                             std::ptrdiff_t row, float* sums) {
    Vec total[C][P];
    for (int i = 0; i < C; ++i)
        for (int p = 0; p < P; ++p) total[i][p] = load(sums + i * row + p * width);
    for (int t = 0; t < count; ++t, deltas.at += delta_tile, turned += lanes * row)
        add_products(lanes, deltas, turned, row, width, total);
    for (int i = 0; i < C; ++i)
        for (int p = 0; p < P; ++p) store(sums + i * row + p * width, total[i][p]);
}

// sums (point, out, in) += deltas · inputs, over tiles and lanes. The inputs are turned, so that channels lie side by
// side and nothing need be summed over lanes; `turned` is room for one point of them.
template <class F>
void add_point_gradients(const Stage& s, const float* inputs, const float* deltas, int count, float* turned,
                         float* sums) {
    const std::ptrdiff_t row = s.padded_channels(), apart = points_apart(s.channels);
    const std::ptrdiff_t delta_apart = points_apart(s.out_channels), delta_tile = F::points * delta_apart;
    for (int j = 0; j < F::points; ++j) {
        for (int t = 0; t < count; ++t)
            turn(inputs + (t * F::points + j) * apart, s.channels, lanes, row, turned + t * lanes * row);
        const float* delta = deltas + j * delta_apart;
        float* to = sums + j * s.weight_points_apart();
        tiles<channel_tile>(s.out_channels, [&](int first, auto size) {
            tiles<position_tile>(whole_vectors(s.channels) / width, [&](int vector, auto together) {
                add_weight_products<decltype(size)::value, decltype(together)::value>(
                    count, {delta + first * lanes, lanes, 1}, delta_tile, turned + vector * width, row,
                    to + first * row + vector * width);
            });
        });
    }
}

// From the points to the taps, added to gradient (out, in, taps).
template <class F>
void add_taps_of(const Stage& s, const float* sums, float* gradient) {
    for (int o = 0; o < s.out_channels; ++o)
        for (int c = 0; c < s.channels; c += width) {
            Vec value[F::points], w[F::taps];
            const float* from = sums + std::ptrdiff_t(o) * s.padded_channels() + c;
            for (int j = 0; j < F::points; ++j) value[j] = load(from + j * s.weight_points_apart());
            F::weights_from_points(value, w);
            float taps[F::taps][width];
            for (int t = 0; t < F::taps; ++t) store(taps[t], w[t]);
            const int count = s.channels - c < width ? s.channels - c : width;
            float* to = gradient + (std::ptrdiff_t(o) * s.channels + c) * F::taps;
            for (int i = 0; i < count; ++i)
                for (int t = 0; t < F::taps; ++t) *to++ += taps[t][i];
        }
}

// C input channels of P vectors: what the deltas send to the inputs is added to `result`. As filter_outputs, backwards.
template <class F, int C, int P>
FEELSTREAM_NOINLINE void filter_spread(const Stage& s, const float* deltas, const float* weights, int first, int tile,
                                       float* result) {
    const std::ptrdiff_t apart = points_apart(s.out_channels);
    Vec lines[C][P][F::points];
    for (int j = 0; j < F::in_columns; ++j) {
        Vec product[C][P][F::in_rows];
        column_products<F>(s.out_channels, {weights + j * s.weight_points_apart() + first, 1, s.padded_channels()},
                           s.weight_points_apart(), deltas + j * apart, product);
        for (int i = 0; i < C; ++i)
            for (int p = 0; p < P; ++p) {
                Vec column[F::in_rows];
                F::inputs_from_column(product[i][p], column);
                for (int y = 0; y < F::in_rows; ++y) lines[i][p][y * F::in_columns + j] = column[y];
            }
    }
    const std::ptrdiff_t row = std::ptrdiff_t(s.columns) * lanes;
    for (int p = 0; p < P; ++p) {
        const Corner<F> corner(s, tiles_together ? tile + p : tile);
        const int rows = s.rows - corner.top < F::in_rows ? s.rows - corner.top : F::in_rows;
        const int columns = s.columns - corner.left < F::in_columns ? s.columns - corner.left : F::in_columns;
        for (int i = 0; i < C; ++i) {
            Vec x[F::points];
            F::inputs_from_lines(lines[i][p], x);
            float* to = result + (std::ptrdiff_t(first + i) * s.rows + corner.top) * row + corner.left * lanes +
                        (tiles_together ? 0 : p * width);
            for (int y = 0; y < rows; ++y)
                for (int k = 0; k < columns; ++k) {
                    float* one = to + y * row + k * lanes;
                    store(one, load(one) + x[y * F::in_columns + k]);
                }
        }
    }
}

// Room to work in: points of inputs and deltas, one point of the inputs turned, and the sums of the weights.
struct FilterRoom {
    float *inputs, *deltas, *turned, *sums;
};

// Adds the gradient of the weights to `gradient`, and writes that of the input to `earlier` unless it is null.
template <class F>
void filter_gradients(const Stage& s, const float* in, const float* delta, const float* route, const float* weights,
                      FilterRoom room, float* gradient, float* earlier) {
    const int all = s.tile_count(F::rows, F::columns), strip = strip_of(F::points, s.channels + s.out_channels);
    for (std::ptrdiff_t i = 0; i < F::points * s.weight_points_apart(); ++i) room.sums[i] = 0;
    if (earlier)
        for (std::size_t i = 0; i < s.inputs() * lanes; ++i) earlier[i] = 0;
    for (int tile = 0; tile < all; tile += strip) {
        const int count = all - tile < strip ? all - tile : strip;
        filter_inputs<F>(s, in, tile, count, room.inputs);
        filter_deltas<F>(s, delta, route, tile, count, room.deltas);
        add_point_gradients<F>(s, room.inputs, room.deltas, count, room.turned, room.sums);
        if (!earlier) continue;
        tiles<channel_tile>(s.channels, [&](int first, auto size) {
            tile_vectors<2>(count, [&](int t, int v, auto together) {
                filter_spread<F, decltype(size)::value, decltype(together)::value>(
                    s, room.deltas + t * F::points * points_apart(s.out_channels) + v, weights, first, tile + t,
                    earlier + v);
            });
        });
    }
    add_taps_of<F>(s, room.sums, gradient);
}

}  // namespace
}  // namespace feelstream
