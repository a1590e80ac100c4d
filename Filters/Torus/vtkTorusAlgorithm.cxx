#include "vtkTorusAlgorithm.h"

#include "AttentionOnly/AttentionEvaluation.h"

// The enumerations of the VTK interface are those of Core.
static_assert(vtkTorusAlgorithm::ISOMETRIC == static_cast<int>(atlas::AngleMap::Isometric));
static_assert(vtkTorusAlgorithm::SKEWED == static_cast<int>(atlas::AngleMap::Skewed));
static_assert(vtkTorusAlgorithm::SOFTMAX == static_cast<int>(atlas::Pattern::Softmax));
static_assert(vtkTorusAlgorithm::HARDMAX == static_cast<int>(atlas::Pattern::Hardmax));
static_assert(
  vtkTorusAlgorithm::EMBEDDING_POSITION == static_cast<int>(atlas::Residual::EmbeddingPosition));
static_assert(vtkTorusAlgorithm::EMBEDDING == static_cast<int>(atlas::Residual::Embedding));
static_assert(vtkTorusAlgorithm::NONE == static_cast<int>(atlas::Residual::None));
static_assert(vtkTorusAlgorithm::RAW_EMBEDDING == static_cast<int>(atlas::Residual::RawEmbedding));

void vtkTorusAlgorithm::SetNumberOfHeadWeights(int number)
{
  const std::size_t size = number > 0 ? number : 0;
  if (size != this->HeadWeights.size())
  {
    this->HeadWeights.resize(size, 1.);
    this->Modified();
  }
}

void vtkTorusAlgorithm::SetHeadWeight(int head, double weight)
{
  if (head < 0)
  {
    vtkErrorMacro("SetHeadWeight: expected a head from 0 on, found " << head << ".");
    return;
  }
  if (head >= this->GetNumberOfHeadWeights())
  {
    this->SetNumberOfHeadWeights(head + 1);
  }
  double& current = this->HeadWeights[head];
  if (current != weight)
  {
    current = weight;
    this->Modified();
  }
}

double vtkTorusAlgorithm::GetHeadWeight(int head) const
{
  return head >= 0 && head < this->GetNumberOfHeadWeights() ? this->HeadWeights[head] : 1;
}

atlas::EvaluationOptions vtkTorusAlgorithm::GetOptions() const
{
  atlas::EvaluationOptions options;
  options.angles = static_cast<atlas::AngleMap>(this->Angles);
  options.pattern = static_cast<atlas::Pattern>(this->Pattern);
  options.residual = static_cast<atlas::Residual>(this->Residual);
  options.headWeights = this->HeadWeights;
  options.wordInPattern = this->WordInPattern != 0;
  options.positionInPattern = this->PositionInPattern != 0;
  options.wordInValues = this->WordInValues != 0;
  options.positionInValues = this->PositionInValues != 0;
  return options;
}
