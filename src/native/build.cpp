#include "build.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <stdexcept>
#include <string>
#include <vector>

#include "network.hpp"

namespace feelstream {
namespace {

std::size_t whole_lines(std::size_t floats) { return (floats + lanes - 1) / lanes * lanes; }

Stage stage(Kind kind, int channels, int rows, int columns, int out_channels, int out_rows, int out_columns) {
    Stage s{};
    s.kind = kind;
    s.channels = channels, s.rows = rows, s.columns = columns;
    s.out_channels = out_channels, s.out_rows = out_rows, s.out_columns = out_columns;
    s.kernel_rows = s.kernel_columns = s.pool_rows = s.pool_columns = 1;
    return s;
}

void add_pool(Stage& s, int rows, int columns) {
    s.pool = true;
    s.pool_rows = rows, s.pool_columns = columns;
    s.out_rows /= rows, s.out_columns /= columns;
}

bool fits(const Layer& layer) {
    const auto [kind, size, rows, columns] = layer;
    switch (kind) {
        case Kind::convolution: return size > 0 && rows > 0 && columns > 0;
        case Kind::dense: return size > 0;
        case Kind::pool: return (rows == 1 || rows == 2) && (columns == 1 || columns == 2) && rows + columns > 2;
        case Kind::relu: return true;
        case Kind::pad: return rows >= 0 && columns >= 0;
    }
    return false;
}

// A stage of its own for a layer with this input.
Stage begin(const Layer& layer, int channels, int rows, int columns) {
    switch (layer.kind) {
        case Kind::convolution: {
            Stage s = stage(layer.kind, channels, rows, columns, layer.size, rows - layer.rows + 1,
                            columns - layer.columns + 1);
            s.kernel_rows = layer.rows, s.kernel_columns = layer.columns;
            return s;
        }
        case Kind::dense: return stage(layer.kind, channels, rows, columns, layer.size, 1, 1);
        case Kind::pad:
            return stage(layer.kind, channels, rows, columns, channels, rows + layer.rows, columns + layer.columns);
        case Kind::pool:
        case Kind::relu: break;
    }
    Stage s = stage(layer.kind, channels, rows, columns, channels, rows, columns);
    if (layer.kind == Kind::pool)
        add_pool(s, layer.rows, layer.columns);
    else
        s.relu = true;
    return s;
}

}  // namespace

const char* name_of(Kind kind) {
    switch (kind) {
        case Kind::convolution: return "convolution";
        case Kind::dense: return "dense";
        case Kind::pool: return "pool";
        case Kind::relu: return "relu";
        case Kind::pad: return "pad";
    }
    return "unknown";
}

std::vector<Stage> fuse(int channels, int rows, int columns, const std::vector<Layer>& layers) {
    std::vector<Stage> stages;
    bool weights = false;
    for (const Layer& layer : layers) {
        const Kind kind = layer.kind;
        if (!fits(layer)) throw std::invalid_argument(std::string("a layer has a wrong size: ") + name_of(kind));
        Stage* last = stages.empty() || stages.back().kind == Kind::pad ? nullptr : &stages.back();
        if (kind == Kind::relu && last) {
            last->relu = true;
        } else if (kind == Kind::pool && last && last->kind == Kind::convolution && !last->pool) {
            // Also after a ReLU: the two commute, in value and in gradient.
            add_pool(*last, layer.rows, layer.columns);
        } else {
            stages.push_back(begin(layer, channels, rows, columns));
            stages.back().has_earlier_weights = weights;
            weights = weights || kind == Kind::convolution || kind == Kind::dense;
        }
        const Stage& s = stages.back();
        channels = s.out_channels, rows = s.out_rows, columns = s.out_columns;
        if (channels < 1 || rows < 1 || columns < 1) throw std::invalid_argument("a layer leaves nothing");
    }
    if (!weights) throw std::invalid_argument("a model needs a layer with weights");
    return stages;
}

Network lay_out(std::vector<Stage>& stages, std::vector<std::size_t>& guards) {
    guards.clear();
    Network net{};
    const Stage &first = stages.front(), &last = stages.back();
    net.stages = stages.data(), net.count = int(stages.size());
    net.pixels = int(first.inputs()), net.classes = int(last.outputs());
    std::size_t used = 0, largest = 0, expanded = 0, transposed = 0, delta_points = 0, sums = 0;
    const auto take = [&](std::size_t floats) {
        const std::size_t at = used;
        used += whole_lines(floats);
#ifdef __SANITIZE_ADDRESS__
        guards.push_back(used);
        used += lanes;
#endif
        return at;
    };
    net.input = take(first.inputs() * lanes);
    for (Stage& s : stages) {
        s.output = take(s.outputs() * lanes);
        if (s.pool) s.route = take(s.outputs() * lanes);
        largest = std::max({largest, s.inputs(), s.outputs()});
        std::int64_t weights = 0;
        if (s.kind == Kind::convolution) {
            weights = std::int64_t(s.out_channels) * s.channels * s.kernel_area();
            constexpr int points = winograd_points * winograd_points;
            // What is transformed is larger, so there is room for the direct way too, which training takes forward.
            const std::size_t along_rows = weights / s.kernel_columns * winograd_points;
            const std::size_t row_points = std::size_t(s.rows) * s.row_tiles() * winograd_points;
            if (s.winograd_shared()) {
                s.forward_weights = take(weights / s.kernel_area() * points);
                s.backward_weights = take(along_rows);
                const std::size_t square = std::size_t(s.square_tiles()) * points;
                s.points = take(s.channels * std::max(square, row_points) * lanes);
                delta_points = std::max(delta_points,
                                        std::size_t(s.out_channels) * s.conv_rows() * s.row_tiles() * winograd_points);
            } else {
                s.forward_weights = take(s.winograd() ? along_rows : std::size_t(weights));
                s.backward_weights = take(weights);
                if (s.winograd()) s.points = take(s.channels * row_points * lanes);
                sums = std::max(sums, s.gradient_sums());
                if (s.pool) expanded = std::max(expanded, s.conv_outputs());
            }
        } else if (s.kind == Kind::dense) {
            weights = std::int64_t(s.out_channels) * s.inputs();
            transposed = std::max(transposed, s.inputs());
        } else {
            continue;
        }
        s.weight = net.parameters;
        s.bias = s.weight + weights;
        net.parameters = s.bias + s.out_channels;
    }
    net.delta[0] = take(largest * lanes), net.delta[1] = take(largest * lanes);
    net.expanded = take(expanded * lanes);
    net.transposed = take(transposed * lanes);
    net.delta_points = take(delta_points * lanes);
    net.sums = take(sums * lanes);
    net.workspace = used;
    return net;
}

}  // namespace feelstream
