#include "Base/Index.h"
#include "Recording/RecordedAttention.h"
#include "Run/RecordTransformer.h"
#include "SequenceTask.h"
#include "Tasks.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <numeric>
#include <string_view>
#include <utility>

namespace atlas
{
namespace
{

constexpr std::int64_t AminoAcidCount = 20;
constexpr std::int64_t HiddenResidue = AminoAcidCount;

/// Partners follow each other.
constexpr std::array<std::pair<char, const char*>, AminoAcidCount> AminoAcids = { { { 'D', "ASP" },
  { 'K', "LYS" }, { 'E', "GLU" }, { 'R', "ARG" }, { 'N', "ASN" }, { 'Q', "GLN" }, { 'S', "SER" },
  { 'T', "THR" }, { 'G', "GLY" }, { 'P', "PRO" }, { 'C', "CYS" }, { 'M', "MET" }, { 'F', "PHE" },
  { 'W', "TRP" }, { 'Y', "TYR" }, { 'H', "HIS" }, { 'I', "ILE" }, { 'L', "LEU" }, { 'V', "VAL" },
  { 'A', "ALA" } } };

/// The contacts of each residue.
const std::vector<std::vector<std::int64_t>>& Contacts()
{
  static const std::vector<std::vector<std::int64_t>> all = []
  {
    std::vector<std::vector<std::int64_t>> contacts(LatticeResidues);
    for (std::int64_t i = 0; i < LatticeResidues; ++i)
    {
      for (std::int64_t j = 0; j < LatticeResidues; ++j)
      {
        if (AreInContact(i, j))
        {
          contacts[i].push_back(j);
        }
      }
    }
    return contacts;
  }();
  return all;
}

std::vector<std::int64_t> DrawResidues(LearningRandom& random)
{
  constexpr int sweeps = 24;
  constexpr double coupling = 3;
  constexpr std::size_t mostContacts = 5;
  std::array<double, mostContacts + 1> weights = {};
  for (std::size_t count = 0; count < weights.size(); ++count)
  {
    weights[count] = std::exp(coupling * static_cast<double>(count));
  }
  std::vector<std::int64_t> residues(LatticeResidues);
  std::generate(residues.begin(), residues.end(), [&] { return random.Integer(AminoAcidCount); });
  for (int sweep = 0; sweep < sweeps; ++sweep)
  {
    for (std::int64_t i = 0; i < LatticeResidues; ++i)
    {
      std::array<std::size_t, AminoAcidCount> partners = {};
      for (const std::int64_t j : Contacts()[i])
      {
        ++partners[residues[j] ^ 1];
      }
      std::array<double, AminoAcidCount> sums = {};
      double sum = 0;
      for (std::size_t letter = 0; letter < sums.size(); ++letter)
      {
        sum += weights[partners[letter]];
        sums[letter] = sum;
      }
      const double drawn = sum * random.Uniform();
      const auto found = std::upper_bound(sums.begin(), sums.end() - 1, drawn);
      residues[i] = found - sums.begin();
    }
  }
  return residues;
}

/// Hidden residues of a protein with one fold on a lattice, as a protein language model learns them
/// from the sequences of a family (Rao et al. 2021).
///
/// A sequence has 36 of 20 amino acids, which are partners in pairs: D and K, E and R, ... Its
/// probability grows by the factor exp(3) with each contact of two partners (a Potts model), so
/// residues that touch covary. It is drawn by 24 sweeps of Gibbs sampling from random residues.
/// Five residues, 15 %, are replaced by [MASK] and to be predicted.
///
/// Measure, on 128 held-out sequences: Contact Precision, of the mean attention of all heads and
/// layers. Beside the model stands chain.pdb, the fold with the first held-out sequence: an alpha
/// carbon per residue, 3.8 angstroms apart.
class LatticeProteinTask : public SequenceTask
{
public:
  explicit LatticeProteinTask(const TaskOptions& options)
    : SequenceTask(options, 128)
  {
    RequireFixed("Vocabulary", options.vocabulary, AminoAcidCount + 1);
    RequireFixed("Context", options.context, LatticeResidues);
  }

  void Configure(TransformerConfig& config) const override
  {
    SequenceTask::Configure(config);
    config.mask = AttentionMask::Bidirectional;
  }

  std::vector<std::string> MeasureNames() const override { return { "Contact Precision" }; }

  std::vector<double> Measure(const Transformer& model, int threads) const override
  {
    RecordOptions options;
    options.values = false;
    options.threads = threads;
    const Recording recording = RecordTransformer(model, this->MakeHeldOut().input, options);
    std::vector<float> sum(ToIndex(LatticeResidues * LatticeResidues));
    std::vector<float> weights(sum.size());
    for (std::int64_t layer = 0; layer < model.GetConfig().layers; ++layer)
    {
      EvaluateAttentionRows(recording,
        { AllSequences, layer, AllHeads, AttentionQuantity::Weights, 0, LatticeResidues },
        weights.data(), threads);
      std::transform(sum.begin(), sum.end(), weights.begin(), sum.begin(), std::plus<>());
    }
    return { ContactPrecision(sum) };
  }

  std::vector<std::string> TokenNames() const override
  {
    std::vector<std::string> names;
    names.reserve(AminoAcids.size() + 1);
    for (const auto& [letter, name] : AminoAcids)
    {
      names.emplace_back(1, letter);
    }
    names.emplace_back("[MASK]");
    return names;
  }

  std::map<std::string, std::string> Files() const override
  {
    LearningRandom random(this->Options.seed, RandomPurpose::HeldOut);
    const std::vector<std::int64_t> residues = DrawResidues(random);
    constexpr double angstroms = 3.8;
    std::string text;
    for (std::size_t i = 0; i < residues.size(); ++i)
    {
      const auto& [x, y, z] = LatticeFold()[i];
      std::array<char, 82> line = {};
      std::snprintf(line.data(), line.size(),
        "ATOM  %5d  CA  %3s A%4d    %8.3f%8.3f%8.3f  1.00  0.00           C  \n",
        static_cast<int>(i + 1), AminoAcids[residues[i]].second, static_cast<int>(i + 1),
        angstroms * x, angstroms * y, angstroms * z);
      text += line.data();
    }
    return { { "chain.pdb", text + "TER\nEND\n" } };
  }

protected:
  void Add(TrainingBatch& batch, LearningRandom& random, std::int64_t, std::int64_t) const override
  {
    constexpr std::int64_t hidden = 5;
    std::vector<std::int64_t> tokens = DrawResidues(random);
    std::vector<std::int64_t> targets(LatticeResidues, -1);
    std::vector<std::int64_t> places = random.Permutation(LatticeResidues);
    places.resize(hidden);
    for (const std::int64_t place : places)
    {
      targets[place] = std::exchange(tokens[place], HiddenResidue);
    }
    batch.input.tokens.push_back(std::move(tokens));
    batch.targets.insert(batch.targets.end(), targets.begin(), targets.end());
  }
};

}

const std::vector<std::array<int, 3>>& LatticeFold()
{
  static const std::vector<std::array<int, 3>> fold = []
  {
    // Steps along x, y and z; capital letters go back.
    constexpr std::string_view steps = "XZyxxZYZXXyzxyxZYXyXzzzYxyZxzYYZXZX";
    std::vector<std::array<int, 3>> places = { { 1, 0, 3 } };
    for (const char step : steps)
    {
      std::array<int, 3> place = places.back();
      const bool isBack = step < 'x';
      place[isBack ? step - 'X' : step - 'x'] += isBack ? -1 : 1;
      places.push_back(place);
    }
    return places;
  }();
  return fold;
}

bool AreInContact(std::int64_t i, std::int64_t j)
{
  const std::array<int, 3>& a = LatticeFold()[i];
  const std::array<int, 3>& b = LatticeFold()[j];
  const int distance = std::abs(a[0] - b[0]) + std::abs(a[1] - b[1]) + std::abs(a[2] - b[2]);
  return distance == 1 && std::abs(i - j) > 1;
}

double ContactPrecision(const std::vector<float>& attention)
{
  constexpr std::int64_t size = LatticeResidues;
  constexpr std::int64_t apart = 3;
  const auto both = [&](std::int64_t i, std::int64_t j)
  {
    return static_cast<double>(attention[i * size + j]) +
           static_cast<double>(attention[j * size + i]);
  };
  std::array<double, LatticeResidues> sums = {};
  for (std::int64_t i = 0; i < size; ++i)
  {
    for (std::int64_t j = 0; j < size; ++j)
    {
      sums[i] += both(i, j);
    }
  }
  const double total = std::accumulate(sums.begin(), sums.end(), 0.);
  std::vector<std::pair<double, bool>> pairs; // minus the score, whether in contact
  for (std::int64_t i = 0; i < size; ++i)
  {
    for (std::int64_t j = i + apart; j < size; ++j)
    {
      pairs.emplace_back(sums[i] * sums[j] / total - both(i, j), AreInContact(i, j));
    }
  }
  constexpr std::int64_t strongest = size / 2;
  std::nth_element(
    pairs.begin(), pairs.begin() + strongest, pairs.end()); // equal: no contact first
  return static_cast<double>(std::count_if(pairs.begin(), pairs.begin() + strongest,
           [](const auto& pair) { return pair.second; })) /
         static_cast<double>(strongest);
}

std::unique_ptr<LearningTask> MakeLatticeProteinTask(const TaskOptions& options)
{
  return std::make_unique<LatticeProteinTask>(options);
}

}
