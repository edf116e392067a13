// What is computed: a stack of layers as stages, and where each stage keeps its numbers.
// Shared by every instruction set, so plain data only (see kernel.hpp for the reason).
#pragma once
#include <cstddef>
#include <cstdint>

namespace feelstream {

// Samples side by side in memory: a block. 16 floats are one cache line and one AVX-512 register.
constexpr int lanes = 16;

// Evaluation takes so many blocks through the last dense layers together, so that a weight is read once for all.
constexpr int max_together = 4;

// A batch of several blocks is cut into at most so many shares, which threads can compute side by side.
constexpr int max_shares = 4;

// winograd.hpp: 4 outputs of a row of 5 weights from 8 products instead of 20.
constexpr int winograd_kernel = 5, winograd_columns = 4, winograd_points = 8;

// How a convolution goes through filter.hpp, if it does: by squares of outputs (3×3 kernels) or along rows (1×5, and in
// evaluation 1×7).
enum class Filter { none, square3, row5, row7 };
// Outputs of a tile in a row. Narrow ones, for training forward, round no worse than a direct sum.
constexpr int narrow = 2, wide = 4;

// Numbers from one point to the next of (tile, point, channel, lane): a line more than needed, or else all points could
// share a set of the cache.
constexpr std::ptrdiff_t points_apart(int channels) { return (std::ptrdiff_t(channels) + 1) * lanes; }

// How many tiles are computed together: as many as leave the points in the second cache.
constexpr int strip_of(int points, int channels) {
    const int fit = 327680 / (points * channels * lanes * int(sizeof(float)));
    return fit < 1 ? 1 : fit > 16 ? 16 : fit;
}

enum class Kind { convolution, dense, pool, relu, pad };

// What a caller asks for: a convolution to `size` channels by kernels of rows × columns, pooling by windows of
// rows × columns, a dense layer of `size` units, or so many rows and columns of zeros (pad), shared out to both sides.
struct Layer {
    Kind kind;
    int size, rows, columns;  // 0 where a kind has none
};

// One pass over memory: a layer together with the pooling and the ReLU that follow it.
struct Stage {
    Kind kind;
    int channels, rows, columns;              // of its input
    int out_channels, out_rows, out_columns;  // of its output, after pooling
    int kernel_rows, kernel_columns;          // of a convolution
    int pool_rows, pool_columns;              // of a pooling window, each 1 or 2; 1×1 without pooling
    bool pool, relu;                          // fused into it; pooling always comes first
    bool has_earlier_weights;                 // so the gradient of its input is needed
    bool placed;                              // a pad whose input is written into its output at once
    int plane_rows, plane_columns;            // of the array that its output lies in: larger where a pad follows
    std::int64_t weight, bias;                // offsets in θ
    std::size_t output, route, points, forward_weights, backward_weights;  // offsets in the workspace

    // A convolution computes only what pooling will look at: an odd last row or column is never touched.
    int conv_rows() const { return pool_rows * out_rows; }
    int conv_columns() const { return pool_columns * out_columns; }
    // Where an output is, from `output` on.
    std::ptrdiff_t at(int channel, int row, int column) const {
        return ((std::ptrdiff_t(channel) * plane_rows + row) * plane_columns + column) * lanes;
    }
    int kernel_area() const { return kernel_rows * kernel_columns; }
    // The paper's and LeNet-5's convolutions go through winograd.hpp, by tiles of its width.
    bool winograd() const {
        return kind == Kind::convolution && pool_rows == 2 && pool_columns == 2 && kernel_rows == winograd_kernel &&
               kernel_columns == winograd_kernel;
    }
    // Backwards too, and along columns in evaluation, where enough channels share the transformations.
    bool winograd_shared() const { return winograd() && channels >= 4; }
    int row_tiles() const { return (conv_columns() + winograd_columns - 1) / winograd_columns; }
    int square_tiles() const { return (conv_rows() + winograd_columns - 1) / winograd_columns * row_tiles(); }
    int tiles_across(int outputs) const { return (conv_columns() + outputs - 1) / outputs; }
    int tile_count(int tile_rows, int tile_columns) const {
        return (conv_rows() + tile_rows - 1) / tile_rows * tiles_across(tile_columns);
    }
    int filter_points(int outputs) const {
        const int line = kernel_columns + outputs - 1;
        return kernel_rows == 1 ? line : line * line;
    }
    Filter filter() const {
        if (kind != Kind::convolution || channels < 3 || out_channels < 4) return Filter::none;
        const bool square = kernel_rows == 3 && kernel_columns == 3;
        if (!square && !(kernel_rows == 1 && (kernel_columns == 5 || kernel_columns == 7))) return Filter::none;
        if (pool && (pool_columns != 2 || pool_rows != (square ? 2 : 1))) return Filter::none;
        // A small plane can leave most of a tile empty.
        const int products = filter_points(wide) * tile_count(square ? wide : 1, wide);
        if (3 * products > 2 * kernel_area() * conv_rows() * conv_columns()) return Filter::none;
        return square ? Filter::square3 : kernel_columns == 5 ? Filter::row5 : Filter::row7;
    }
    // Gradients want more channels that share the transformations than evaluation. Forward, training takes the direct
    // sum along rows, which narrow tiles would hardly beat.
    bool filters_back() const { return (filter() == Filter::square3 || filter() == Filter::row5) && channels >= 4; }
    bool filters_forward(bool train) const {
        return train ? filter() == Filter::square3 && channels >= 4 : filter() != Filter::none;
    }
    // Of weights at points: (point, out, in).
    int padded_channels() const { return (channels + lanes - 1) / lanes * lanes; }
    std::ptrdiff_t weight_points_apart() const { return std::ptrdiff_t(out_channels) * padded_channels() + lanes; }
    // Sums of a weight gradient: a vector for each tap and up to 8 output channels.
    std::size_t gradient_sums() const { return std::size_t(8) * channels * kernel_area(); }
    std::size_t inputs() const { return std::size_t(channels) * rows * columns; }
    // Of a dense layer's inputs turned to (lane, feature): whole vectors.
    std::size_t padded_inputs() const { return (inputs() + lanes - 1) / lanes * lanes; }
    std::size_t outputs() const { return std::size_t(out_channels) * out_rows * out_columns; }
    std::size_t conv_outputs() const { return std::size_t(out_channels) * conv_rows() * conv_columns(); }
};

struct Network {
    const Stage* stages;
    int count;
    int pixels, classes;
    int image_rows, image_columns, row_gap, plane_gap;  // of the input: lines to pass over behind each row and plane
    int tail;                                           // the first of the dense stages at the end
    std::int64_t parameters;
    // Offsets of buffers that stages share, and the size of a whole workspace, in floats.
    std::size_t input, delta[2], expanded, transposed, delta_points, sums, filter_inputs, workspace;
};

// A data set as it lies in memory, uint8 or float (the other is null); normalising is value · scale + shift.
struct Samples {
    const std::uint8_t* pixels;
    const float* values;
    const std::int32_t* labels;
    float scale, shift;
};

}  // namespace feelstream
