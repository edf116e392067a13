// What is computed: a stack of layers as stages, and where each stage keeps its numbers.
// Shared by every instruction set, so plain data only (see kernel.hpp for the reason).
#pragma once
#include <cstddef>
#include <cstdint>

namespace feelstream {

// Samples side by side in memory: a block. 16 floats are one cache line and one AVX-512 register.
constexpr int lanes = 16;

// A batch of several blocks is cut into at most so many shares, which threads can compute side by side.
constexpr int max_shares = 4;

// winograd.hpp: 4 outputs of a row of 5 weights from 8 products instead of 20.
constexpr int winograd_kernel = 5, winograd_columns = 4, winograd_points = 8;

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
    std::int64_t weight, bias;                // offsets in θ
    std::size_t output, route, points, forward_weights, backward_weights;  // offsets in the workspace

    // A convolution computes only what pooling will look at: an odd last row or column is never touched.
    int conv_rows() const { return pool_rows * out_rows; }
    int conv_columns() const { return pool_columns * out_columns; }
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
    // Sums of a weight gradient: a vector for each tap and up to 5 output channels.
    std::size_t gradient_sums() const { return std::size_t(5) * channels * kernel_area(); }
    std::size_t inputs() const { return std::size_t(channels) * rows * columns; }
    std::size_t outputs() const { return std::size_t(out_channels) * out_rows * out_columns; }
    std::size_t conv_outputs() const { return std::size_t(out_channels) * conv_rows() * conv_columns(); }
};

struct Network {
    const Stage* stages;
    int count;
    int pixels, classes;
    std::int64_t parameters;
    // Offsets of buffers that stages share, and the size of a whole workspace, in floats.
    std::size_t input, delta[2], expanded, transposed, delta_points, sums, workspace;
};

// A data set as it lies in memory, uint8 or float (the other is null); normalising is value · scale + shift.
struct Samples {
    const std::uint8_t* pixels;
    const float* values;
    const std::int32_t* labels;
    float scale, shift;
};

}  // namespace feelstream
