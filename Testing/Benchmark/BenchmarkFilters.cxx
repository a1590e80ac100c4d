// What a filter takes beside the kernel inside it, on the same threads in the same run: a slider's
// change of Attention Torus. Argument: points along each side. Class, Probability, ClassColor and
// Attention of three heads. The last output is kept until the next one is there, as ParaView does.
// Counters: kernel_ms, the time of the kernel alone, into memory that is in use already;
// filter_over_kernel, medians.

#include "AttentionOnlyModel.h"
#include "Execution.h"
#include "FieldEvaluation.h"
#include "ModelConversion.h"
#include "TorusChart.h"
#include "vtkAttentionTorus.h"

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <vector>

#include <vtkImageData.h>
#include <vtkMultiBlockDataSet.h>
#include <vtkNew.h>
#include <vtkTrivialProducer.h>

#include <benchmark/benchmark.h>

namespace
{

template<class Function>
double SecondsOf(const Function& function)
{
  const auto begin = std::chrono::steady_clock::now();
  function();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}

double Median(std::vector<double> values)
{
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

/// The kernel's work for a chart, in arrays of its own.
class Kernel
{
public:
  Kernel(const atlas::AttentionOnlyModel& model, int side)
    : Model(model)
    , Side(side)
    , Points(static_cast<std::size_t>(side) * static_cast<std::size_t>(side))
    , Predicted(this->Points)
    , Probability(this->Points)
    , Color(3 * this->Points)
    , Attention(model.HeadCount(), std::vector<float>(this->Points))
  {
    this->Arrays.predicted = this->Predicted.data();
    this->Arrays.probability = this->Probability.data();
    this->Arrays.classColor = this->Color.data();
    for (std::vector<float>& head : this->Attention)
    {
      this->Arrays.attention.push_back(head.data());
    }
    for (int i = 0; i < side; ++i)
    {
      this->Angles.push_back(AttentionAtlas::ChartAngle(i, side));
    }
  }

  void Run(double weight)
  {
    atlas::EvaluationOptions options;
    options.headWeights = { 1, weight, 1 };
    atlas::FieldEvaluator evaluator(this->Model, options);
    evaluator.SetColumns(this->Angles);
    AttentionAtlas::ParallelFor(0, this->Side,
      [&](vtkIdType begin, vtkIdType end)
      {
        for (vtkIdType row = begin; row < end; ++row)
        {
          const auto r = static_cast<std::size_t>(row);
          evaluator.EvaluateRow(this->Angles[r], this->Arrays, r * this->Angles.size());
        }
      });
  }

private:
  const atlas::AttentionOnlyModel& Model;
  int Side;
  std::size_t Points;
  std::vector<std::int32_t> Predicted;
  std::vector<float> Probability;
  std::vector<std::uint8_t> Color;
  std::vector<std::vector<float>> Attention;
  std::vector<double> Angles;
  atlas::FieldArrays Arrays;
};

void HeadWeights(benchmark::State& state)
{
  const auto side = static_cast<int>(state.range(0));
  const atlas::AttentionOnlyModel model =
    atlas::ReadAttentionOnlyModel(ATLAS_DATA_DIR "/trained-n5-h3.safetensors");
  vtkNew<vtkMultiBlockDataSet> data;
  AttentionAtlas::ToDataSet(model, data);
  vtkNew<vtkTrivialProducer> producer;
  producer->SetOutput(data);
  vtkNew<vtkAttentionTorus> torus;
  torus->SetInputConnection(producer->GetOutputPort());
  torus->SetResolution(side, side);
  torus->SetQuantityArrayStatus("Attention", 1);
  torus->SetNumberOfHeadWeights(3);
  vtkNew<vtkImageData> shown;
  Kernel kernel(model, side);
  double weight = 1;
  const auto change = [&]
  {
    torus->SetHeadWeight(1, weight);
    torus->Update();
    shown->ShallowCopy(torus->GetOutputDataObject(0));
  };
  std::vector<double> ofKernel;
  std::vector<double> ofFilter;
  change();
  kernel.Run(weight);
  for (auto _ : state)
  {
    weight -= 1e-3;
    ofFilter.push_back(SecondsOf(change));
    ofKernel.push_back(SecondsOf([&] { kernel.Run(weight); }));
    state.SetIterationTime(ofFilter.back());
  }
  state.counters["kernel_ms"] = 1e3 * Median(ofKernel);
  state.counters["filter_over_kernel"] = Median(ofFilter) / Median(ofKernel);
}

}

BENCHMARK(HeadWeights)
  ->Arg(512)
  ->Arg(2000)
  ->UseManualTime()
  ->MinTime(3)
  ->Unit(benchmark::kMillisecond);
