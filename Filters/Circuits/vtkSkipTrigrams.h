#ifndef vtkSkipTrigrams_h
#define vtkSkipTrigrams_h

#include "AttentionAtlasCircuitsModule.h"

#include <vtkTaskAlgorithm.h>

#include <string>
#include <vector>

namespace atlas
{
class OpenTransformer;
struct SkipTrigram;
}

/**
 * @class vtkSkipTrigrams
 * @brief The strongest skip-trigrams of a head, over the whole vocabulary.
 *
 * Input: a language model, as produced by vtkTransformerReader. A skip-trigram "source ...
 * destination output" (Elhage et al. 2021): the head attends from the destination back to the
 * source and so raises the logit of the output. Its score is QK * OV, where QK is the entry of the
 * circuit of queries and keys at (destination, source) minus the mean of its row over all sources,
 * and OV that of the circuit of outputs and values at (source, output) minus the mean of its row
 * over all outputs; both are positive. Formulas: Core's SkipTrigrams.h.
 *
 * Output: a vtkTable by falling score: Rank (int, from 1), Source, Destination, Output (string),
 * Score, QK, OV (double), Source TokenId, Destination TokenId, Output TokenId, Layer, Head (int).
 * Field data: Processing, Left Out (string).
 *
 * On several ranks the sources are shared among them, and the first rank has the table. Canceling
 * leaves it empty.
 */
class ATTENTIONATLASCIRCUITS_EXPORT vtkSkipTrigrams : public vtkTaskAlgorithm
{
public:
  static vtkSkipTrigrams* New();
  vtkTypeMacro(vtkSkipTrigrams, vtkTaskAlgorithm);

  ///@{
  /**
   * The index of the layer, from 0. Default: 0.
   */
  vtkSetMacro(Layer, int);
  vtkGetMacro(Layer, int);
  ///@}

  ///@{
  /**
   * The index of the head, from 0. Default: 0.
   */
  vtkSetMacro(Head, int);
  vtkGetMacro(Head, int);
  ///@}

  ///@{
  /**
   * How many skip-trigrams the table has, at least 1; less if fewer have a positive score. Default:
   * 50.
   */
  vtkSetMacro(Top, int);
  vtkGetMacro(Top, int);
  ///@}

  ///@{
  /**
   * The sources, by text or id (Core's TokenFinder.h). Destinations and outputs are always of the
   * whole vocabulary. Default: none, which means all.
   */
  void AddToken(const char* token);
  void ClearTokens();
  const std::vector<std::string>& GetTokens() const { return this->Tokens; }
  ///@}

  ///@{
  /**
   * Whether weights are processed as TransformerLens does. Default: true.
   */
  vtkSetMacro(Processing, bool);
  vtkGetMacro(Processing, bool);
  ///@}

  ///@{
  /**
   * The first and last layer and head of the model as of the last UpdateInformation; 0, 0 without
   * input.
   */
  int* GetLayerRange() VTK_SIZEHINT(2) { return this->LayerRange; }
  int* GetHeadRange() VTK_SIZEHINT(2) { return this->HeadRange; }
  ///@}

protected:
  vtkSkipTrigrams();
  ~vtkSkipTrigrams() override = default;

  int RequestInformation(vtkInformation* request, vtkInformationVector** inputVector,
    vtkInformationVector* outputVector) override;
  void Execute(AttentionAtlas::Task& task) override;

private:
  std::vector<atlas::SkipTrigram> Find(
    const atlas::OpenTransformer& model, const AttentionAtlas::Task& task) const;

  vtkSkipTrigrams(const vtkSkipTrigrams&) = delete;
  void operator=(const vtkSkipTrigrams&) = delete;

  int Layer = 0;
  int Head = 0;
  int Top = 50;
  std::vector<std::string> Tokens;
  bool Processing = true;
  int LayerRange[2] = { 0, 0 };
  int HeadRange[2] = { 0, 0 };
};

#endif
