#include "TrainingSweep.h"

#include "Execution.h"

namespace AttentionAtlas
{

void TrainingSweep::Update(const TrainingRequest& request,
  const std::vector<atlas::TrainingOptions>& options, const TrainingProgress& progress)
{
  this->Done.clear();
  this->Swept = request;
  this->Options = options;
  const std::optional<atlas::AttentionOnlyModel> model = request.ReadModel();
  this->Done = atlas::RunTrainings(options, { model ? &*model : nullptr, request.continues },
    ThreadLimit(), [&progress](double done) { return progress(done, false); });
}

std::vector<atlas::TrainingOptions> SweepPiece(
  const TrainingRequest& request, int seeds, bool allModes, int piece, int pieces)
{
  using Modes = atlas::TrainingMode;
  const std::vector<Modes> modes =
    allModes ? std::vector<Modes>{ Modes::Joint, Modes::Boosting, Modes::BoostingOutputOnly }
             : std::vector<Modes>{ request.options.mode };
  const auto all = atlas::SweepOptions(request.options, seeds, modes);
  const auto bound = [&](int number)
  { return all.begin() + static_cast<std::int64_t>(all.size()) * number / pieces; };
  return { bound(piece), bound(piece + 1) };
}

}
