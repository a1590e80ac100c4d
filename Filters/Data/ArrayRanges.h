#pragma once

class vtkDataSetAttributes;

namespace AttentionAtlas
{

/// Computes the ranges of all float, int and unsigned char arrays in parallel and stores them in
/// VTK's cache. ParaView requests all ranges after each update, and VTK's own computation on one
/// thread takes ten times as long as computing the arrays. No value may be NaN or infinite. Call
/// this last, as a later Modified() of an array discards its ranges.
void CacheRanges(vtkDataSetAttributes* attributes);

}
