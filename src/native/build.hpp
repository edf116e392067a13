// From layers to stages: what can be fused is fused, and every stage gets its place in memory.
#pragma once
#include <cstddef>
#include <vector>

#include "network.hpp"

namespace feelstream {

// The word for a kind in messages and profiles.
const char* name_of(Kind kind);

std::vector<Stage> fuse(int channels, int rows, int columns, const std::vector<Layer>& layers);

// Under the address sanitizer a line that nobody may touch follows every array; `guards` are their offsets.
Network lay_out(std::vector<Stage>& stages, std::vector<std::size_t>& guards);

}  // namespace feelstream
