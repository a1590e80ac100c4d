#pragma once

class vtkDataSetAttributes;

namespace AttentionAtlas
{

/// Computes the ranges of all float, int and unsigned char arrays in parallel and leaves them where
/// VTK looks for them. ParaView asks for all ranges after each update, and where VTK computes them
/// itself, on one thread, they take ten times as long as the arrays. No value may be NaN or
/// infinite. To be called last: a later Modified() of an array drops its ranges.
void CacheRanges(vtkDataSetAttributes* attributes);

}
