#include "Base/Index.h"
#include "Learning/Internal/Tasks.h"
#include "TaskModel.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

using namespace atlas;
using namespace atlas::test;

namespace
{

constexpr std::int64_t Size = LatticeResidues;
constexpr std::int64_t Hidden = 20;

/// Attention of these pairs, in one direction.
std::vector<float> AttentionOn(const std::vector<std::pair<std::int64_t, std::int64_t>>& pairs)
{
  std::vector<float> attention(ToIndex(Size * Size));
  for (const auto& [i, j] : pairs)
  {
    attention[i * Size + j] = 1;
  }
  return attention;
}

/// Adds pairs at least three apart, in contact or not, with no residue in more than two pairs.
void AddPairs(
  std::vector<std::pair<std::int64_t, std::int64_t>>& pairs, std::size_t count, bool areInContact)
{
  std::map<std::int64_t, int> uses;
  for (const auto& [i, j] : pairs)
  {
    ++uses[i];
    ++uses[j];
  }
  for (std::int64_t i = 0; i < Size; ++i)
  {
    for (std::int64_t j = Size - 1; j >= i + 3 && count > 0; --j)
    {
      if (AreInContact(i, j) == areInContact && uses[i] < 2 && uses[j] < 2)
      {
        pairs.emplace_back(j, i);
        ++uses[i];
        ++uses[j];
        --count;
      }
    }
  }
  ASSERT_EQ(count, 0U);
}

TEST(LatticeProtein, TheChainFillsTheBlock)
{
  const auto& fold = LatticeFold();
  ASSERT_EQ(fold.size(), 36U);
  EXPECT_EQ((std::set<std::array<int, 3>>(fold.begin(), fold.end()).size()), 36U);
  for (std::size_t i = 0; i < fold.size(); ++i)
  {
    int steps = 0;
    for (std::size_t axis = 0; axis < 3; ++axis)
    {
      EXPECT_GE(fold[i][axis], 0);
      EXPECT_LT(fold[i][axis], axis == 2 ? 4 : 3);
      steps += i > 0 ? std::abs(fold[i][axis] - fold[i - 1][axis]) : 0;
    }
    EXPECT_EQ(steps, i > 0 ? 1 : 0);
  }
}

/// A block of 3 x 3 x 4 has 2*3*4 + 3*2*4 + 3*3*3 = 75 pairs of neighbors, 35 of them in the chain.
TEST(LatticeProtein, ContactsAreNeighborsThatTheChainDoesNotJoin)
{
  std::int64_t contacts = 0;
  for (std::int64_t i = 0; i < Size; ++i)
  {
    for (std::int64_t j = 0; j < Size; ++j)
    {
      EXPECT_EQ(AreInContact(i, j), AreInContact(j, i));
      EXPECT_FALSE(AreInContact(i, j) && (std::abs(i - j) < 3 || (i - j) % 2 == 0));
      contacts += AreInContact(i, j) ? 1 : 0;
    }
  }
  EXPECT_EQ(contacts, 2 * 40);
}

TEST(LatticeProtein, PrecisionCountsTheStrongestPairs)
{
  std::vector<std::pair<std::int64_t, std::int64_t>> pairs;
  AddPairs(pairs, 12, true);
  AddPairs(pairs, 6, false);
  EXPECT_DOUBLE_EQ(ContactPrecision(AttentionOn(pairs)), 12. / 18);
  for (auto& [i, j] : pairs)
  {
    std::swap(i, j);
  }
  EXPECT_DOUBLE_EQ(ContactPrecision(AttentionOn(pairs)), 12. / 18) << "either direction counts";
  EXPECT_EQ(ContactPrecision(std::vector<float>(ToIndex(Size * Size), 1.F / Size)), 0)
    << "equal attention finds nothing";
}

/// Attention that is a product of what each of two residues attracts says nothing of the pair.
TEST(LatticeProtein, PrecisionIsCorrectedForStrongResidues)
{
  std::vector<std::pair<std::int64_t, std::int64_t>> pairs;
  AddPairs(pairs, 18, true);
  std::vector<float> attention = AttentionOn(pairs);
  const auto strength = [](std::int64_t i) { return i % 7 == 0 ? 6.F : 2.F; };
  for (std::int64_t i = 0; i < Size; ++i)
  {
    for (std::int64_t j = 0; j < Size; ++j)
    {
      attention[i * Size + j] += strength(i) * strength(j) / 4;
    }
  }
  EXPECT_EQ(ContactPrecision(attention), 1);
}

/// Of all letters, m have one partner in contact, and 20 - m have none: they are drawn with odds of
/// e^3 to 1, whatever else the sequence is.
TEST(LatticeProteinTask, PartnersInContactAreLikely)
{
  const auto task = MakeTask(OptionsOf(TaskKind::LatticeProtein, 2));
  double expected = 0;
  double variance = 0;
  double found = 0;
  for (const auto& sequence : Restored(task->MakeBatch(0, 400)))
  {
    for (std::int64_t i = 0; i < Size; ++i)
    {
      std::map<std::int64_t, int> partners;
      for (std::int64_t j = 0; j < Size; ++j)
      {
        if (AreInContact(i, j))
        {
          ++partners[sequence[j] % 2 == 0 ? sequence[j] + 1 : sequence[j] - 1];
        }
      }
      if (partners.empty() || std::any_of(partners.begin(), partners.end(),
                                [](const auto& partner) { return partner.second > 1; }))
      {
        continue;
      }
      const auto count = static_cast<double>(partners.size());
      const double share = count * std::exp(3) / (count * std::exp(3) + 20 - count);
      expected += share;
      variance += share * (1 - share);
      found += partners.count(sequence[i]) != 0 ? 1 : 0;
    }
  }
  EXPECT_GT(expected, 1000);
  EXPECT_NEAR(found, expected, 5 * std::sqrt(variance));
}

TEST(LatticeProteinTask, FiveResiduesAreHidden)
{
  const auto task = MakeTask(OptionsOf(TaskKind::LatticeProtein));
  const TrainingBatch batch = task->MakeBatch(0, 200);
  std::size_t row = 0;
  std::set<std::int64_t> places;
  for (const auto& sequence : batch.input.tokens)
  {
    EXPECT_THAT(sequence, testing::SizeIs(36));
    EXPECT_EQ(std::count(sequence.begin(), sequence.end(), Hidden), 5);
    for (std::size_t i = 0; i < sequence.size(); ++i)
    {
      EXPECT_EQ(sequence[i] == Hidden, batch.targets[row] >= 0);
      EXPECT_NE(batch.targets[row], Hidden);
      if (sequence[i] == Hidden)
      {
        places.insert(static_cast<std::int64_t>(i));
      }
      ++row;
    }
  }
  EXPECT_THAT(places, testing::SizeIs(36));
}

TEST(LatticeProteinTask, ChainHasTheFoldAndASequence)
{
  const auto task = MakeTask(OptionsOf(TaskKind::LatticeProtein, 3));
  const std::map<std::string, std::string> names = { { "ASP", "D" }, { "LYS", "K" }, { "GLU", "E" },
    { "ARG", "R" }, { "ASN", "N" }, { "GLN", "Q" }, { "SER", "S" }, { "THR", "T" }, { "GLY", "G" },
    { "PRO", "P" }, { "CYS", "C" }, { "MET", "M" }, { "PHE", "F" }, { "TRP", "W" }, { "TYR", "Y" },
    { "HIS", "H" }, { "ILE", "I" }, { "LEU", "L" }, { "VAL", "V" }, { "ALA", "A" } };
  const std::vector<std::int64_t> sequence = Restored(task->MakeHeldOut()).front();
  const std::vector<std::string> letters = task->TokenNames();
  std::istringstream text(task->Files().at("chain.pdb"));
  std::string line;
  for (std::size_t i = 0; i < sequence.size(); ++i)
  {
    std::getline(text, line);
    ASSERT_THAT(line, testing::SizeIs(80));
    EXPECT_EQ(line.substr(0, 6), "ATOM  ");
    EXPECT_EQ(line.substr(12, 4), " CA ");
    EXPECT_EQ(names.at(line.substr(17, 3)), letters[sequence[i]]);
    EXPECT_EQ(std::stoi(line.substr(22, 4)), static_cast<int>(i) + 1);
    for (std::size_t axis = 0; axis < 3; ++axis)
    {
      EXPECT_NEAR(std::stod(line.substr(30 + 8 * axis, 8)), 3.8 * LatticeFold()[i][axis], 1e-9);
    }
  }
  std::getline(text, line);
  EXPECT_EQ(line, "TER");
}

/// A head whose queries are positions and whose keys are the positions in contact; without it all
/// attention is equal.
TEST(LatticeProteinTask, MeasuresWhatHeadsFind)
{
  const auto task = MakeTask(OptionsOf(TaskKind::LatticeProtein));
  ArchitectureOptions architecture;
  architecture.layers = 1;
  architecture.heads = 1;
  architecture.modelDimension = Size;
  TaskModel model(*task, architecture);
  EXPECT_THAT(task->MeasureNames(), testing::ElementsAre("Contact Precision"));
  EXPECT_THAT(task->Measure(model.Make(), 2), testing::ElementsAre(0));
  for (std::int64_t i = 0; i < Size; ++i)
  {
    model.Set("pos_embed.W_pos", i, i, 1);
    model.Set("blocks.0.attn.W_Q", i, i, 20);
    for (std::int64_t j = 0; j < Size; ++j)
    {
      model.Set("blocks.0.attn.W_K", j, i, AreInContact(i, j) ? 1.F : 0.F);
    }
  }
  EXPECT_THAT(task->Measure(model.Make(), 2), testing::ElementsAre(1));
}

}
