#include "build.hpp"

#include <algorithm>
#include <stdexcept>

namespace feelstream {
namespace {

std::size_t whole_lines(std::size_t floats) { return (floats + lanes - 1) / lanes * lanes; }

Stage weighted(Kind kind, int channels, int rows, int columns, int out, int kernel) {
    Stage s{};
    s.kind = kind;
    s.channels = channels, s.rows = rows, s.columns = columns;
    s.out_channels = out;
    s.out_rows = kind == Kind::dense ? 1 : rows - kernel + 1;
    s.out_columns = kind == Kind::dense ? 1 : columns - kernel + 1;
    s.kernel = kernel;
    return s;
}

Stage weightless(Kind kind, int channels, int rows, int columns) {
    Stage s{};
    s.kind = kind;
    s.channels = s.out_channels = channels;
    s.rows = rows, s.columns = columns;
    s.pool = kind == Kind::pool, s.relu = kind == Kind::relu;
    s.out_rows = s.pool ? rows / 2 : rows;
    s.out_columns = s.pool ? columns / 2 : columns;
    return s;
}

}  // namespace

std::vector<Stage> fuse(int channels, int rows, int columns, const std::vector<Layer>& layers) {
    std::vector<Stage> stages;
    bool weights = false;
    for (const auto& [word, size, kernel] : layers) {
        Stage* last = stages.empty() ? nullptr : &stages.back();
        if (word == "relu" && last) {
            last->relu = true;
        } else if (word == "pool" && last && last->kind == Kind::convolution && !last->pool) {
            // Also after a ReLU: the two commute, in value and in gradient.
            last->pool = true;
            last->out_rows /= 2, last->out_columns /= 2;
        } else if (word == "relu" || word == "pool") {
            stages.push_back(weightless(word == "relu" ? Kind::relu : Kind::pool, channels, rows, columns));
            stages.back().has_earlier_weights = weights;
        } else if ((word == "conv" && kernel > 0) || word == "dense") {
            const Kind kind = word == "conv" ? Kind::convolution : Kind::dense;
            stages.push_back(weighted(kind, channels, rows, columns, size, kernel));
            stages.back().has_earlier_weights = weights;
            weights = true;
        } else {
            throw std::invalid_argument("unknown layer '" + word + "'");
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
    std::size_t used = 0, largest = 0, expanded = 0, transposed = 0, delta_points = 0;
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
            weights = std::int64_t(s.out_channels) * s.channels * s.kernel * s.kernel;
            s.forward_weights = take(s.winograd() ? weights / s.kernel * winograd_points : weights);
            s.backward_weights = take(weights);
            if (s.winograd())
                s.points = take(std::size_t(s.channels) * s.rows * s.row_tiles() * winograd_points * lanes);
            if (s.winograd_gradient())
                delta_points = std::max(delta_points, std::size_t(s.out_channels) * s.conv_rows() * s.row_tiles() *
                                                          winograd_points);
            if (s.pool) expanded = std::max(expanded, s.conv_outputs());
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
    net.gradient = take(net.parameters);
    net.delta[0] = take(largest * lanes), net.delta[1] = take(largest * lanes);
    net.expanded = take(expanded * lanes);
    net.transposed = take(transposed * lanes);
    net.delta_points = take(delta_points * lanes);
    net.workspace = used;
    return net;
}

}  // namespace feelstream
