// From layers to stages: what can be fused is fused, and every stage gets its place in memory.
#pragma once
#include <vector>

#include "engine.hpp"

namespace feelstream {

std::vector<Stage> fuse(int channels, int rows, int columns, const std::vector<Layer>& layers);
Network lay_out(std::vector<Stage>& stages);

}  // namespace feelstream
