#pragma once

#include "Core/OracleFile.h"
#include "Core/TransformerOracle.h"
#include "Recordings.h"
#include "Run/RecordTransformer.h"

#include <vtkTypeInt64Array.h>

namespace atlas::test
{

/// A file of expected values on embeddings (Testing/Oracle/embedding), and the recording that it
/// belongs to.
class ViewsOracle : public OracleFile
{
public:
  explicit ViewsOracle(const std::string& name)
    : OracleFile("embedding/" + name + ".views.safetensors")
  {
    const TransformerOracle oracle(name);
    this->Source =
      RecordTransformer(Transformer::Read(oracle.Path() / "config.json"), oracle.Input(), {});
  }

  Recording Source;
};

/// The points of an embedding that a test puts together: heads one after another, each with its
/// queries, then its keys.
class Embedding
{
public:
  explicit Embedding(const Recording& recording)
    : Source(recording)
  {
    for (const RecordedLayer& layer : recording.layers)
    {
      for (std::size_t h = 0; h < layer.heads.size(); ++h)
      {
        this->AddHead(layer.index, static_cast<int>(h));
      }
    }
  }

  /// Adds a point at (x, y, 0); its token is a row of the recording.
  void Add(int layer, int head, int kind, std::int64_t token, double x, double y)
  {
    const RecordedTokens& tokens = this->Source.tokens;
    const std::size_t row = token;
    const vtkIdType id = this->Points->InsertNextPoint(x, y, 0);
    this->Vertices->InsertNextCell(1, &id);
    this->Layer->InsertNextValue(layer);
    this->Head->InsertNextValue(head);
    this->Kind->InsertNextValue(kind);
    this->TokenIndex->InsertNextValue(token);
    this->Sequence->InsertNextValue(tokens.sequence[row]);
    this->Position->InsertNextValue(tokens.position[row]);
    if (!tokens.text.empty())
    {
      this->Token->InsertNextValue(tokens.text[row]);
    }
  }

  vtkSmartPointer<vtkPolyData> Data() const
  {
    auto data = vtkSmartPointer<vtkPolyData>::New();
    data->SetPoints(this->Points);
    data->SetVerts(this->Vertices);
    const auto add = [&data](vtkAbstractArray* array, const char* name)
    {
      array->SetName(name);
      data->GetPointData()->AddArray(array);
    };
    add(this->Layer, "Layer");
    add(this->Head, "Head");
    add(this->Kind, "Kind");
    add(this->TokenIndex, "Token Index");
    add(this->Sequence, "Sequence");
    add(this->Position, "Position");
    if (this->Token->GetNumberOfValues() > 0)
    {
      add(this->Token, "Token");
    }
    return data;
  }

  void Clear()
  {
    this->Points->Reset();
    this->Vertices->Reset();
    for (vtkAbstractArray* array : std::initializer_list<vtkAbstractArray*>{ this->Layer,
           this->Head, this->Kind, this->TokenIndex, this->Sequence, this->Position, this->Token })
    {
      array->Reset();
    }
  }

private:
  const Recording& Source;
  vtkNew<vtkPoints> Points;
  vtkNew<vtkCellArray> Vertices;
  vtkNew<vtkIntArray> Layer;
  vtkNew<vtkIntArray> Head;
  vtkNew<vtkIntArray> Kind;
  vtkNew<vtkTypeInt64Array> TokenIndex;
  vtkNew<vtkIntArray> Sequence;
  vtkNew<vtkIntArray> Position;
  vtkNew<vtkStringArray> Token;

  void AddHead(int layer, int head)
  {
    for (const int kind : { 0, 1 })
    {
      for (std::int64_t token = 0; token < this->Source.tokens.Count(); ++token)
      {
        this->Add(layer, head, kind, token, head + static_cast<double>(token) / 100, kind - layer);
      }
    }
  }
};

}
