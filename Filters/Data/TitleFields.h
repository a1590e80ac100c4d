#pragma once

#include "AttentionAtlasDataModule.h"

#include "Recording/RecordedAttention.h"

#include <cstddef>
#include <string>

class vtkFieldData;

/// Field arrays that titles of views repeat; see Views/Titles.h.
namespace AttentionAtlas
{

/// What the model is called (string): of transformers in files, and of recordings and statistics of
/// corpora that were made with them.
inline constexpr const char* ModelNameField = "Model Name";

/// Says of a list that was cut how many things it has, as "12 of 40 texts" in the field array
/// Listed (string). Adds nothing to a whole list.
ATTENTIONATLASDATA_EXPORT void AddListed(
  vtkFieldData* fields, std::size_t listed, std::size_t all, const std::string& things);

/// Says in the field array "ARRAY Title" (string) what the values of an array are, where its name
/// does not: "Norm of weight x value", "Rollout". Adds nothing for weights.
ATTENTIONATLASDATA_EXPORT void AddArrayTitle(
  vtkFieldData* fields, const std::string& array, atlas::AttentionQuantity quantity);

}
