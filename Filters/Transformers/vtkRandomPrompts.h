#pragma once

#include "AttentionAtlasTransformersModule.h"

#include <vtkTaskAlgorithm.h>

/// Makes sequences of random token ids, with or without repetition. No input. Output: a vtkTable
/// with one row per token, for the second input of vtkTransformerRecorder: Sequence (int), Position
/// (int, from 0) and TokenId (64-bit integer); the same in each piece. No model can have memorized
/// random tokens, so they isolate what a head does with repetition (previous token, induction and
/// duplicate token heads). Core's Prompts.h has the details.
class ATTENTIONATLASTRANSFORMERS_EXPORT vtkRandomPrompts : public vtkTaskAlgorithm
{
public:
  static vtkRandomPrompts* New();
  vtkTypeMacro(vtkRandomPrompts, vtkTaskAlgorithm);

  enum KindType
  {
    ONE_TOKEN = 0,
    RANDOM = 1,
    REPEATED_BLOCK = 2
  };

  /// ONE_TOKEN: each sequence is one random token, repeated. RANDOM: each token is drawn at random.
  /// REPEATED_BLOCK: a random block of tokens, repeated up to Length. Default: RANDOM.
  vtkSetClampMacro(Kind, int, ONE_TOKEN, REPEATED_BLOCK);
  vtkGetMacro(Kind, int);

  /// Tokens per sequence, number of sequences, and tokens of the repeated block, each at least 1.
  /// Default: 64, 1, 16.
  vtkSetMacro(Length, int);
  vtkGetMacro(Length, int);
  vtkSetMacro(Count, int);
  vtkGetMacro(Count, int);
  vtkSetMacro(Block, int);
  vtkGetMacro(Block, int);

  /// The seed of all random numbers. Default: 0.
  vtkSetMacro(Seed, int);
  vtkGetMacro(Seed, int);

  /// The lowest and the highest id that may be drawn; at least 0 and in the vocabulary of the
  /// model. Default: 0, 999.
  vtkSetVector2Macro(IdRange, int);
  vtkGetVector2Macro(IdRange, int);

protected:
  vtkRandomPrompts();

  int RequestInformation(vtkInformation* request, vtkInformationVector** inputVector,
    vtkInformationVector* outputVector) override;
  void Execute(AttentionAtlas::Task& task) override;

private:
  int Kind = RANDOM;
  int Length = 64;
  int Count = 1;
  int Block = 16;
  int Seed = 0;
  int IdRange[2] = { 0, 999 };
};
